# write the passwords where PgBouncer reads them, then become PgBouncer
set -eu
umask 077
for role in trickle app; do
    printf '"%s" "%s"\n' "$role" "$PGTRICKLE_PASSWORD"
done > /run/users/users.txt
exec pgbouncer /etc/pgbouncer/pgbouncer.ini

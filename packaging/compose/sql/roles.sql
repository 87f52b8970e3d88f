-- roles: `trickle` runs the sidecar and is nobody special; `app` owns the shop and its stream tables.
create role trickle login password :'password';
create role app login password :'password';
grant create, temporary on database shop to trickle;
grant create on schema public to app;

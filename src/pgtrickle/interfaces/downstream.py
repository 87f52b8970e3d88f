"""The methods of `Trickle` for what follows a stream table: publications, subscribers and channels."""

from __future__ import annotations

from pgtrickle.commands import publications, subscriptions
from pgtrickle.commands.publications import Publication, PublicationStatus
from pgtrickle.commands.subscriptions import Subscription
from pgtrickle.model.records import Records


class Downstream:
    """Publications, their subscribers, and channels that refreshes notify."""

    _dsn: str

    def publish(self, name: str, publication: str | None = None) -> Publication:
        """Publish a stream table by logical replication. Safe to call again.

        Subscribers receive the rows that each refresh inserts, updates and deletes. `notices` says what keeps
        them from subscribing, for example a `wal_level` below `logical`.

        >>> trickle.publish("sales").publication
        'pgt_pub_sales'
        """
        return publications.publish(self._dsn, name, publication)

    def unpublish(self, name: str) -> list[str]:
        """Drop the publication that `publish` has created; return notices about slots that are left.

        >>> notices = trickle.unpublish("sales")
        """
        return publications.unpublish(self._dsn, name)

    def publications(self) -> Records[PublicationStatus]:
        """The publications that stream tables belong to, and how far each known subscriber is.

        >>> late = [one.slot for one in trickle.publications() if one.is_late]
        """
        return Records(PublicationStatus, publications.publications(self._dsn))

    def track(self, name: str, slot: str) -> None:
        """Record that a replication slot reads a stream table, so that an alert tells if it falls behind."""
        publications.register_subscriber(self._dsn, name, slot)

    def untrack(self, name: str, slot: str) -> None:
        """Forget that a replication slot reads a stream table. The slot itself is unchanged."""
        publications.unregister_subscriber(self._dsn, name, slot)

    def subscribe(self, name: str, channel: str) -> None:
        """Have every refresh that changes a stream table notify a channel when it commits.

        The payload is JSON with `stream_table`, `inserted`, `deleted`, `refresh_id` and `data_timestamp`.

        >>> trickle.subscribe("sales", "sales_changed")
        """
        subscriptions.subscribe(self._dsn, name, channel)

    def unsubscribe(self, name: str, channel: str) -> None:
        """No longer notify a channel.

        >>> trickle.unsubscribe("sales", "sales_changed")
        """
        subscriptions.unsubscribe(self._dsn, name, channel)

    def subscriptions(self) -> Records[Subscription]:
        """The channels that refreshes notify, of the stream tables that you may read.

        >>> channels = [one.channel for one in trickle.subscriptions()]
        """
        return Records(Subscription, subscriptions.subscriptions(self._dsn))

    # the names of the SQL functions and of the view
    register_subscriber = track
    unregister_subscriber = untrack
    stream_table_to_publication = publish
    drop_stream_table_publication = unpublish
    publication_status = publications

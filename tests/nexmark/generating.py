"""People, auctions and bids as an auction site would see them, the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final

Row = tuple[object, ...]

MIDNIGHT: Final = datetime(2024, 3, 1)
"""Events happen around it, so that the queries that count by day see two days."""
SIDE_INPUTS: Final = 40

_STATES: Final = {
    "or": ("Portland", "Bend"),
    "id": ("Boise",),
    "ca": ("Los Angeles", "San Francisco", "Palo Alto"),
    "wa": ("Seattle", "Kent", "Redmond"),
    "az": ("Phoenix",),
    "wy": ("Cheyenne",),
}
_CHANNELS: Final = ("google", "facebook", "baidu", "apple", "Apple", "channel-7", "channel-42")
_ITEMS: Final = ("lamp", "bicycle", "piano", "chair", "radio", "clock")


@dataclass(slots=True)
class Site:
    """Draws events; the ids that it gives never come again."""

    draw: Random
    people: int = 1000
    auctions: int = 1000
    moment: int = -60_000
    """Milliseconds after midnight."""

    def events(self, count: int) -> Iterator[tuple[str, Row]]:
        """Tables and rows for them, as time goes by: few people, some auctions, many bids."""
        for number in range(count):
            self.moment += self.draw.randint(50, 300)
            if number % 25 == 0:
                yield "person", self.person()
            elif number % 25 in (1, 2, 3):
                yield "auction", self.auction()
            else:
                yield "bid", self.bid()

    def person(self) -> Row:
        self.people += 1
        state = self.draw.choice(list(_STATES))
        name = f"{self.draw.choice('ABCDEFG')}. {self.draw.choice(['Walton', 'Noris', 'Shultz'])}"
        card = " ".join(str(self.draw.randint(1000, 9999)) for _ in range(4))
        city = self.draw.choice(_STATES[state])
        return (
            self.people,
            name,
            f"{self.people}@example.org",
            card,
            city,
            state,
            self._now(),
            self._extra(),
        )

    def auction(self) -> Row:
        self.auctions += 1
        initial = self.draw.randint(1, 500)
        expires = self._now() + timedelta(milliseconds=self.draw.randint(2_000, 60_000))
        return (
            self.auctions,
            self.draw.choice(_ITEMS),
            f"as new, number {self.auctions}",
            initial,
            initial + self.draw.randint(0, 300),
            self._now(),
            expires,
            self.seller(),
            self.draw.randint(10, 14),
            self._extra(),
        )

    def bid(self) -> Row:
        channel = self.draw.choice(_CHANNELS)
        path = "/".join(self.draw.choice(["oak", "elm", "ash", "fir"]) for _ in range(3))
        url = f"https://auctions.example.org/{path}/item.htm?query=1"
        if channel.startswith("channel-"):
            url += f"&channel_id={channel.removeprefix('channel-')}"
        price = self.draw.choice([100, 1_000, 20_000, 2_000_000]) + self.draw.randint(0, 99)
        return (self.some_auction(), self.seller(), price, channel, url, self._now(), self._extra())

    def seller(self) -> int:
        """Someone; now and then someone who has not come yet."""
        return self.draw.randint(1001, self.people + 2)

    def some_auction(self) -> int:
        """An auction, most often one of the latest."""
        latest = max(1001, self.auctions - 15)
        return self.draw.randint(latest if self.draw.random() < 0.7 else 1001, self.auctions + 1)

    def _now(self) -> datetime:
        return MIDNIGHT + timedelta(milliseconds=self.moment)

    def _extra(self) -> str:
        return "".join(self.draw.choice("abc ") for _ in range(self.draw.randint(0, 6)))


def side_inputs() -> list[Row]:
    return [(key, f"value {key}") for key in range(SIDE_INPUTS)]

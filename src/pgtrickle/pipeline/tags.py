"""What the jobs of a refresh are known by, so that they can be cancelled and no others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from pyspark.sql import SparkSession

from pgtrickle.pipeline.jvm.process import is_remote

_TAG: Final[ContextVar[str | None]] = ContextVar("tag", default=None)


def current_tag() -> str | None:
    """The tag of what this thread computes."""
    return _TAG.get()


@contextmanager
def tagged(tag: str | None) -> Iterator[None]:
    """Compute under a tag."""
    token = _TAG.set(tag)
    try:
        yield
    finally:
        _TAG.reset(token)


@contextmanager
def tagged_jobs(session: SparkSession) -> Iterator[None]:
    """Let the jobs of a session carry the current tag. It costs two calls, so only jobs are worth it."""
    tag = current_tag()
    if tag is None:
        yield
        return
    owner = _owner(session)
    add, remove = (
        (owner.addTag, owner.removeTag) if is_remote(session) else (owner.addJobTag, owner.removeJobTag)
    )
    add(tag)
    try:
        yield
    finally:
        remove(tag)


def cancel_jobs(session: SparkSession, tag: str) -> None:
    """Cancel the jobs that carry a tag, whichever thread they run in."""
    owner = _owner(session)
    if is_remote(session):
        owner.interruptTag(tag)
    else:
        owner.cancelJobsWithTag(tag)


def _owner(session: SparkSession) -> Any:
    """What knows the tags of all threads: without Spark Connect, a session knows those of its thread only."""
    return session if is_remote(session) else session.sparkContext

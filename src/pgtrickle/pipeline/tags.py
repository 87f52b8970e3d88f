"""Tags that identify the jobs of one refresh, so that they can be canceled without any others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from pyspark.sql import SparkSession

from pgtrickle.pipeline.jvm.process import is_remote

_TAG: Final[ContextVar[str | None]] = ContextVar("tag", default=None)


def current_tag() -> str | None:
    """The tag under which this thread computes."""
    return _TAG.get()


@contextmanager
def use_tag(tag: str | None) -> Iterator[None]:
    """Compute under a tag."""
    token = _TAG.set(tag)
    try:
        yield
    finally:
        _TAG.reset(token)


@contextmanager
def tagged_jobs(session: SparkSession) -> Iterator[None]:
    """Give the current tag to the jobs of a session. It takes two calls into the JVM."""
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
    """The object that knows the tags of all threads. Without Spark Connect, that is not the session."""
    return session if is_remote(session) else session.sparkContext

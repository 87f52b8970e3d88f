"""What a stream table relies on, and what happens when it changes."""

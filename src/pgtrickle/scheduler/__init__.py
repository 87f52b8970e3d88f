"""What is due, in which order, and when to look again."""

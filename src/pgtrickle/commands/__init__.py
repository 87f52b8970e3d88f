"""The commands that users can run, each implemented once. All interfaces call these."""

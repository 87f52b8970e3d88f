"""The HTTP API of a sidecar and its web page. The packages of the extra `http` are imported on use."""

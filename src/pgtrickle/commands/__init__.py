"""Each thing a user can ask, once; all interfaces are skins over these."""

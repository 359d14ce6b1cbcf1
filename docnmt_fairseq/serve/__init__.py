"""HTTP server for translations: requests of many clients share one translator."""

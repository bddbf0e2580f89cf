"""The cluster as columns. It knows neither plugins nor the network."""

"""The alerts of deploy/monitoring, as promtool checks them; tests/e2e/test_dashboard.py has them on a Prometheus."""

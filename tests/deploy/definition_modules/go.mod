module policysched.io/tests/definitions

go 1.26.0

require (
	github.com/argoproj/argo-cd/v3 v3.4.6
	github.com/fluxcd/kustomize-controller v1.9.6
	github.com/fluxcd/source-controller v1.9.6
	github.com/kyverno/api v0.0.1-alpha.3.0.20260723090831-fb2785727f98
	github.com/prometheus-operator/prometheus-operator v0.85.0
)

{{/* The configuration file: the value `config`, else the file of the overlay. */}}
{{- define "policysched.configuration" -}}
{{- if .Values.config -}}
{{ .Values.config }}
{{- else -}}
{{ .Files.Get (ternary "in-place/scheduler.yaml" "base/scheduler.yaml" .Values.inPlace) }}
{{- end -}}
{{- end -}}

{{/* The files with the objects of the release. */}}
{{- define "policysched.files" -}}
{{- if .Values.definition }}
- definition/schedulingpolicies.yaml
{{- end }}
- base/rights.yaml
- base/deployment.yaml
- base/service.yaml
{{- if gt (int .Values.replicas) 1 }}
- base/disruption.yaml
{{- end }}
{{- if .Values.networkPolicy }}
- components/network-policy/network-policy.yaml
{{- end }}
{{- if .Values.serviceMonitor }}
- components/service-monitor/service-monitor.yaml
{{- end }}
{{- if .Values.alerts }}
- monitoring/alerts.yaml
{{- end }}
{{- if .Values.webhook }}
- components/webhook/webhook.yaml
{{- end }}
{{- end -}}

{{/* Set image, pull secrets and node selector of a Deployment `object` from the values of `root`. */}}
{{- define "policysched.image" -}}
{{- $values := .root.Values -}}
{{- $pod := .object.spec.template.spec -}}
{{- with $values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- with $values.nodeSelector }}{{ $_ := set $pod "nodeSelector" . }}{{ end -}}
{{- $container := first $pod.containers -}}
{{- $tag := default .root.Chart.AppVersion $values.image.tag -}}
{{- $_ := set $container "image" (printf "%s:%s" $values.image.repository $tag) -}}
{{- if ne $values.image.pullPolicy "IfNotPresent" }}{{ $_ := set $container "imagePullPolicy" $values.image.pullPolicy }}{{ end -}}
{{- end -}}

{{/* Set replicas, resources and flags of the scheduler's Deployment `object` from the values of `root`. */}}
{{- define "policysched.deployment" -}}
{{- $values := .root.Values -}}
{{- $_ := set .object.spec "replicas" $values.replicas -}}
{{- $container := first .object.spec.template.spec.containers -}}
{{- with $values.resources }}{{ $_ := set $container "resources" . }}{{ end -}}
{{- $_ := set $container "args" (concat $container.args $values.extraArgs) -}}
{{- end -}}

{{/* Set the lease of the Role `object` to the one that the configuration of `root` names. */}}
{{- define "policysched.lease" -}}
{{- $configuration := fromYaml (include "policysched.configuration" .root) -}}
{{- $lease := dig "leaderElection" "resourceName" "kube-scheduler" $configuration -}}
{{- $_ := set (first .object.rules) "resourceNames" (list $lease) -}}
{{- end -}}

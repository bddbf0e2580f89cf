{{/* The files with the objects of the release. */}}
{{- define "policysched.files" -}}
{{- if .Values.definition }}
- definition/schedulingpolicies.yaml
{{- end }}
- base/rights.yaml
- base/user-roles.yaml
- base/reader.yaml
- base/deployment.yaml
- base/service.yaml
{{- if gt (int .Values.replicas) 1 }}
- base/disruption.yaml
{{- end }}
{{- if .Values.networkPolicy.enabled }}
- components/network-policy/network-policy.yaml
{{- end }}
{{- if .Values.serviceMonitor.enabled }}
- components/service-monitor/service-monitor.yaml
{{- end }}
{{- if .Values.alerts.enabled }}
- monitoring/alerts.yaml
{{- end }}
{{- if .Values.webhook.enabled }}
- components/webhook/webhook.yaml
{{- end }}
{{- end -}}

{{/* The configuration file: the value `config`, else the file of the overlay. */}}
{{- define "policysched.configuration" -}}
{{- if .Values.config -}}
{{ .Values.config }}
{{- else -}}
{{ .Files.Get (ternary "in-place/scheduler.yaml" "base/scheduler.yaml" .Values.inPlace) }}
{{- end -}}
{{- end -}}

{{/* The image: by digest, or by tag. */}}
{{- define "policysched.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ printf "%s@%s" $image.repository $image.digest }}
{{- else -}}
{{ printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) }}
{{- end -}}
{{- end -}}

{{/* Add labels and the release's namespace to `object`. */}}
{{- define "policysched.metadata" -}}
{{- $root := .root -}}
{{- $metadata := .object.metadata -}}
{{- $labels := dict "app.kubernetes.io/name" "policysched" -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_") -}}
{{- $_ := set $labels "app.kubernetes.io/instance" $root.Release.Name -}}
{{- $_ := set $labels "app.kubernetes.io/version" ($root.Chart.AppVersion | replace "+" "_") -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $_ := set $metadata "labels" (merge (default (dict) $metadata.labels) $labels) -}}
{{- if has $metadata.name (list "policysched-leases") -}}
{{- $configuration := fromYaml (include "policysched.configuration" $root) -}}
{{- $_ := set $metadata "namespace" (dig "leaderElection" "resourceNamespace" "kube-system" $configuration) -}}
{{- else if eq $metadata.name "policysched-authentication-reader" -}}
{{- $_ := set $metadata "namespace" "kube-system" -}}
{{- else if eq .object.kind "PrometheusRule" -}}
{{- $_ := set $metadata "namespace" $root.Release.Namespace -}}
{{- end -}}
{{- end -}}

{{/* Set what the pods of all Deployments have in common in the pod template `template`. */}}
{{- define "policysched.pods" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $metadata := .template.metadata -}}
{{- $spec := .template.spec -}}
{{- $_ := set $metadata "labels" (merge (dict) $metadata.labels $values.podLabels) -}}
{{- with $values.podAnnotations }}{{ $_ := set $metadata "annotations" (merge (dict) (default (dict) $metadata.annotations) .) }}{{ end -}}
{{- range $key := list "imagePullSecrets" "nodeSelector" -}}
{{- with get $values $key }}{{ $_ := set $spec $key . }}{{ end -}}
{{- end -}}
{{- if not (kindIs "invalid" $values.tolerations) }}{{ $_ := set $spec "tolerations" $values.tolerations }}{{ end -}}
{{- if $values.priorityClassName }}{{ $_ := set $spec "priorityClassName" $values.priorityClassName }}{{ else }}{{ $_ := unset $spec "priorityClassName" }}{{ end -}}
{{- $container := first $spec.containers -}}
{{- $_ := set $container "image" (include "policysched.image" $root) -}}
{{- if ne $values.image.pullPolicy "IfNotPresent" }}{{ $_ := set $container "imagePullPolicy" $values.image.pullPolicy }}{{ end -}}
{{- end -}}

{{/* Set the values for the scheduler alone in its Deployment `object`. */}}
{{- define "policysched.scheduler" -}}
{{- $values := .root.Values -}}
{{- $_ := set .object.spec "replicas" $values.replicas -}}
{{- $spec := .object.spec.template.spec -}}
{{- $_ := set $spec "serviceAccountName" $values.serviceAccount.name -}}
{{- if not (kindIs "invalid" $values.affinity) }}{{ $_ := set $spec "affinity" $values.affinity }}{{ end -}}
{{- with $values.topologySpreadConstraints }}{{ $_ := set $spec "topologySpreadConstraints" . }}{{ end -}}
{{- $container := first $spec.containers -}}
{{- if not (kindIs "invalid" $values.resources) }}{{ $_ := set $container "resources" $values.resources }}{{ end -}}
{{- with $values.extraEnv }}{{ $_ := set $container "env" . }}{{ end -}}
{{- $args := $container.args -}}
{{- with $values.tlsSecret -}}
{{- $args = concat $args (list "--tls-cert-file=/etc/policysched-tls/tls.crt" "--tls-private-key-file=/etc/policysched-tls/tls.key") -}}
{{- $mount := dict "name" "tls" "mountPath" "/etc/policysched-tls" "readOnly" true -}}
{{- $_ := set $container "volumeMounts" (append $container.volumeMounts $mount) -}}
{{- $_ := set $spec "volumes" (append $spec.volumes (dict "name" "tls" "secret" (dict "secretName" .))) -}}
{{- end -}}
{{- $_ := set $container "args" (concat $args $values.extraArgs) -}}
{{- end -}}

{{/* Set the Secret with the CA, or no verification, in the ServiceMonitor `object`. */}}
{{- define "policysched.monitor" -}}
{{- $values := .root.Values -}}
{{- $endpoint := first .object.spec.endpoints -}}
{{- if $values.serviceMonitor.insecureSkipVerify -}}
{{- $_ := set $endpoint "tlsConfig" (dict "insecureSkipVerify" true) -}}
{{- else -}}
{{- $secret := required "serviceMonitor needs tlsSecret, a Secret with tls.crt, tls.key and ca.crt" $values.tlsSecret -}}
{{- $_ := set $endpoint.tlsConfig.ca.secret "name" $secret -}}
{{- end -}}
{{- $_ := set .object.metadata "labels" (merge (dict) $values.serviceMonitor.labels .object.metadata.labels) -}}
{{- end -}}

{{/* The object of a YAML `text`, changed by the values; empty if the release does not have it. */}}
{{- define "policysched.object" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $object := fromYaml .text -}}
{{- if ne $object.kind "CustomResourceDefinition" }}{{ $object = fromYaml (replace "kube-system" $root.Release.Namespace .text) }}{{ end -}}
{{- $given := dict "object" $object "root" $root -}}
{{- include "policysched.metadata" $given -}}
{{- $isOurs := eq $object.metadata.name "policysched" -}}
{{- range $subject := $object.subjects -}}
{{- if eq $subject.name "policysched" }}{{ $_ := set $subject "name" $values.serviceAccount.name }}{{ end -}}
{{- end -}}
{{- if eq $object.kind "Deployment" -}}
{{- include "policysched.pods" (dict "template" $object.spec.template "root" $root) -}}
{{- $_ := set $object.metadata "labels" (merge (dict) $object.metadata.labels $values.deploymentLabels) -}}
{{- with $values.deploymentAnnotations }}{{ $_ := set $object.metadata "annotations" . }}{{ end -}}
{{- if $isOurs -}}
{{- include "policysched.scheduler" $given -}}
{{- else if ne $root.Release.Namespace "kube-system" -}}
{{- $container := first $object.spec.template.spec.containers -}}
{{- $_ := set $container "args" (append $container.args (printf "--namespace=%s" $root.Release.Namespace)) -}}
{{- end -}}
{{- else if and $isOurs (eq $object.kind "ServiceAccount") -}}
{{- $_ := set $object.metadata "name" $values.serviceAccount.name -}}
{{- with $values.serviceAccount.annotations }}{{ $_ := set $object.metadata "annotations" . }}{{ end -}}
{{- if not $values.serviceAccount.create }}{{ $object = dict }}{{ end -}}
{{- else if and (eq $object.kind "Role") (eq $object.metadata.name "policysched-leases") -}}
{{- $configuration := fromYaml (include "policysched.configuration" $root) -}}
{{- $_ := set (first $object.rules) "resourceNames" (list (dig "leaderElection" "resourceName" "kube-scheduler" $configuration)) -}}
{{- else if eq $object.kind "ServiceMonitor" -}}
{{- include "policysched.monitor" $given -}}
{{- else if eq $object.kind "PrometheusRule" -}}
{{- $_ := set $object.metadata "labels" (merge (dict) $values.alerts.labels $object.metadata.labels) -}}
{{- else if eq $object.kind "CustomResourceDefinition" -}}
{{- $_ := set $object.metadata "annotations" (dict "helm.sh/resource-policy" "keep") -}}
{{- end -}}
{{- with $object }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* Numbers that follow from others. */}}

{{/* Seconds from SIGTERM to SIGKILL: the drain, five seconds to leave the group while brokers are away, and a margin. */}}
{{- define "tollgate.gracePeriodMin" -}}
{{- $drain := dig "worker" "drain_timeout_ms" 30000 .Values.config | int -}}
{{- add (div (add $drain 999) 1000) 5 10 -}}
{{- end -}}

{{- define "tollgate.gracePeriod" -}}
{{- default (include "tollgate.gracePeriodMin" .) .Values.terminationGracePeriodSeconds -}}
{{- end -}}

{{/* The same for servers: the delay in which balancers notice, 65 seconds for requests that have begun, and a margin. */}}
{{- define "tollgate.serveGracePeriod" -}}
{{- $delay := dig "serve" "stop_delay_ms" 5000 .Values.config | int -}}
{{- max (add (div (add $delay 999) 1000) 65 10) (default 0 .Values.terminationGracePeriodSeconds | int) -}}
{{- end -}}

{{/* Group members of a pod; one where the configuration leaves it to the node's cores. */}}
{{- define "tollgate.members" -}}
{{- dig "worker" "members" 1 .Values.config | default 1 | int -}}
{{- end -}}

{{/* How many pods can have a partition each. */}}
{{- define "tollgate.replicasMax" -}}
{{- $members := include "tollgate.members" . | int -}}
{{- div (add (int .Values.topics.partitions) $members -1) $members -}}
{{- end -}}

{{/* The ports of the brokers, as a JSON list. */}}
{{- define "tollgate.brokerPorts" -}}
{{- $ports := list -}}
{{- range splitList "," (dig "kafka" "brokers" "" .Values.config) -}}
{{- $ports = append $ports (regexFind ":[0-9]+$" (trim .) | trimPrefix ":" | default "9092" | int) -}}
{{- end -}}
{{- $ports | uniq | sortAlpha | toJson -}}
{{- end -}}

{{/* The port of a URL. */}}
{{- define "tollgate.portOf" -}}
{{- $url := urlParse . -}}
{{- regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- end -}}

{{/* The ports of the trace collector and of the OAuth token endpoint, as a JSON list. */}}
{{- define "tollgate.otherPorts" -}}
{{- $ports := list -}}
{{- $properties := dig "kafka" "properties" dict .Values.config -}}
{{- range compact (list (dig "traces" "endpoint" "" .Values.config) (get $properties "sasl.oauthbearer.token.endpoint.url")) -}}
{{- $ports = append $ports (include "tollgate.portOf" . | int) -}}
{{- end -}}
{{- $ports | uniq | sortAlpha | toJson -}}
{{- end -}}

{{/* The ports of the policy servers, as a JSON list. */}}
{{- define "tollgate.policyServerPorts" -}}
{{- $guardrails := dig "guardrails" dict .Values.config -}}
{{- $providers := default list $guardrails.providers -}}
{{- with $guardrails.provider -}}{{- $providers = append $providers . -}}{{- end -}}
{{- $ports := list -}}
{{- range $providers -}}
{{- with dig "config" "url" "" . -}}
{{- $ports = append $ports (include "tollgate.portOf" . | int) -}}
{{- end -}}
{{- end -}}
{{- $ports | uniq | sortAlpha | toJson -}}
{{- end -}}

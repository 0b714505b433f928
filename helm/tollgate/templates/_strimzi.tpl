{{/* Strimzi's resources, and Helm's hooks. */}}

{{- define "tollgate.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
# What failed stays until the next attempt, so that its log can be read.
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{- define "tollgate.strimziMetadata" -}}
namespace: {{ default .Release.Namespace .Values.strimzi.namespace | quote }}
labels:
  {{- include "tollgate.labelsOf" (list . "topics") | nindent 2 }}
  strimzi.io/cluster: {{ .Values.strimzi.cluster | quote }}
{{- end -}}

{{/* What a topic is set up with; takes a list of root and role. docs/topics.md says why. */}}
{{- define "tollgate.topicConfig" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $config := dict -}}
{{- with $root.Values.topics.minInsyncReplicas -}}{{- $_ := set $config "min.insync.replicas" (int .) -}}{{- end -}}
{{- if has $role (list "controls" "abuse" "state") -}}{{- $_ := set $config "cleanup.policy" "compact" -}}{{- end -}}
{{- if eq $role "state" -}}
{{- $_ := set $config "max.message.bytes" (max 1048588 (add 4096 (dig "limits" "thread_bytes_max" 65536 $root.Values.config | int))) -}}
{{- $_ := set $config "segment.bytes" (max 67108864 (index $config "max.message.bytes")) -}}
{{- end -}}
{{- if eq $role "abuse" -}}{{- $_ := set $config "segment.bytes" 67108864 -}}{{- end -}}
{{- if eq $role "signals" -}}{{- $_ := set $config "retention.ms" 691200000 -}}{{- end -}}
{{- if and (has $role (list "events" "dlq")) $root.Values.topics.maxMessageBytes -}}
{{- $_ := set $config "max.message.bytes" (int $root.Values.topics.maxMessageBytes) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $config (get $root.Values.topics.config $role | default dict)) -}}
{{- end -}}

{{/* Rules for a topic; takes a list of root, role and operations. */}}
{{- define "tollgate.topicAcl" -}}
- resource: {type: topic, name: {{ include "tollgate.topic" . | quote }}, patternType: literal}
  operations: [{{ index . 2 }}, Describe, DescribeConfigs]
  host: "*"
{{- end -}}

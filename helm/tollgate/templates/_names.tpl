{{/* Names, labels and the image. */}}

{{- define "tollgate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 52 characters: Kubernetes appends a hash of ten to it, for a label of the pods. */}}
{{- define "tollgate.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* Takes a list of root and component. */}}
{{- define "tollgate.selectorLabelsOf" -}}
app.kubernetes.io/name: {{ include "tollgate.name" (index . 0) }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "tollgate.selectorLabels" -}}
{{ include "tollgate.selectorLabelsOf" (list . "worker") }}
{{- end -}}

{{/* Labels of everything but pods' selectors; takes a list of root and component. */}}
{{- define "tollgate.labelsOf" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ include "tollgate.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tollgate.labels" -}}
{{ include "tollgate.labelsOf" (list . "worker") }}
{{- end -}}

{{- define "tollgate.serveName" -}}
{{- printf "%s-serve" (include "tollgate.fullname" . | trunc 46 | trimSuffix "-") -}}
{{- end -}}

{{- define "tollgate.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tollgate.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "tollgate.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The name of a topic, by its role. Defaults are those of the program; a test compares them. */}}
{{- define "tollgate.topic" -}}
{{- $defaults := dict "events" "agent.events" "decisions" "agent.decisions" "dlq" "agent.events.dlq" "controls" "agent.controls" "alerts" "agent.alerts" "signals" "tollgate.signals" "abuse" "tollgate.abuse" "state" "tollgate.state" "replies" "agent.replies" -}}
{{- $role := index . 1 -}}
{{- dig "kafka" "topics" $role (get $defaults $role) (index . 0).Values.config -}}
{{- end -}}

{{- define "tollgate.groupId" -}}
{{- dig "kafka" "group_id" "tollgate" .Values.config -}}
{{- end -}}

{{- define "tollgate.abuseGroupId" -}}
{{- default (printf "%s-abuse" (include "tollgate.groupId" .)) (dig "abuse" "group_id" "" .Values.config) -}}
{{- end -}}

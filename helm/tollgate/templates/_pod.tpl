{{/* What the pods of workers, of servers and of the topic job have in common. */}}

{{/* Takes a list of root, access and the name of the ConfigMap. */}}
{{- define "tollgate.volumes" -}}
{{- $sources := include "tollgate.secretSources" . -}}
- name: config
  configMap:
    name: {{ index . 2 }}
{{- if trim $sources }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- $sources | nindent 6 }}
{{- end }}
{{- with (index . 0).Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tollgate.volumeMounts" -}}
- name: config
  mountPath: /etc/tollgate/config
  readOnly: true
{{- if include "tollgate.secretSources" . | trim }}
- name: secrets
  mountPath: /etc/tollgate/secrets
  readOnly: true
{{- end }}
{{- with (index . 0).Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tollgate.env" -}}
- name: TOLLGATE_CONFIG
  value: /etc/tollgate/config/{{ ternary "serve.yaml" "tollgate.yaml" (default false (index . 1).isServe) }}
{{- include "tollgate.secretEnv" . }}
{{- end -}}

{{/* The pod template. Takes a list of root, access and the component: worker or serve. */}}
{{- define "tollgate.podTemplate" -}}
{{- $component := index . 2 -}}
{{- $isServe := eq $component "serve" -}}
{{- $access := merge (dict "isServe" $isServe) (index . 1) -}}
{{- $root := index . 0 -}}
{{- $parts := list $root $access (include "tollgate.fullname" $root) -}}
{{- with $root -}}
metadata:
  labels:
    {{- include "tollgate.selectorLabelsOf" (list . $component) | nindent 4 }}
    {{- with merge (dict) .Values.podLabels .Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A new configuration restarts the pods.
    checksum/config: {{ include (ternary "tollgate.serveConfig" "tollgate.config" $isServe) (list . $access) | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "tollgate.serviceAccountName" . }}
  automountServiceAccountToken: false
  # Otherwise Kubernetes sets variables named after services, and a service may be named tollgate.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include (ternary "tollgate.serveGracePeriod" "tollgate.gracePeriod" $isServe) . }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    {{- $selector := dict "labelSelector" (dict "matchLabels" (include "tollgate.selectorLabelsOf" (list $root $component) | fromYaml)) }}
    - {{- toYaml (merge (deepCopy .) $selector) | nindent 6 }}
    {{- end }}
  {{- end }}
  containers:
    - name: tollgate
      image: {{ include "tollgate.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        {{- if $isServe }}
        - serve
        {{- else }}
        - run
        {{- with .Values.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- end }}
      env:
        {{- include "tollgate.env" $parts | nindent 8 }}
        - name: TOLLGATE__WORKER__INSTANCE_ID
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- if $isServe }}
        # Each server reads the partition of its pod's number.
        - name: TOLLGATE__SERVE__PARTITION
          valueFrom:
            fieldRef:
              fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: admin
          containerPort: {{ .Values.admin.port }}
          protocol: TCP
        {{- if $isServe }}
        - name: http
          containerPort: {{ .Values.serve.port }}
          protocol: TCP
        {{- end }}
      {{- with .Values.probes }}
      startupProbe:
        httpGet: {path: {{ .startup.path }}, port: admin}
        periodSeconds: {{ .startup.periodSeconds }}
        timeoutSeconds: {{ .startup.timeoutSeconds }}
        # restoreSecondsMax / periodSeconds, rounded up
        failureThreshold: {{ div (add (int .startup.restoreSecondsMax) (int .startup.periodSeconds) -1) (int .startup.periodSeconds) }}
      livenessProbe:
        httpGet: {path: /livez, port: admin}
        {{- toYaml .liveness | nindent 8 }}
      readinessProbe:
        httpGet: {path: /readyz, port: admin}
        {{- toYaml .readiness | nindent 8 }}
      {{- end }}
      resources:
        {{- toYaml (ternary .Values.serve.resources .Values.resources $isServe) | nindent 8 }}
      securityContext:
        {{- toYaml .Values.containerSecurityContext | nindent 8 }}
      volumeMounts:
        {{- include "tollgate.volumeMounts" $parts | nindent 8 }}
  volumes:
    {{- include "tollgate.volumes" $parts | nindent 4 }}
{{- end }}
{{- end -}}

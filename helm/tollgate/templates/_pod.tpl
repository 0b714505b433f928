{{/* What the pods of workers and of the topic job have in common. */}}

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
  value: /etc/tollgate/config/tollgate.yaml
{{- include "tollgate.secretEnv" . }}
{{- end -}}

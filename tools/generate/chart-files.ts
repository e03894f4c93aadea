/** The files of deploy/chart beside the objects: Chart.yaml, values with their texts, the schema, checks, and notes. */
import { SYSTEM_NAMESPACE, AGENTS_NAMESPACE } from '../../src/api/manifest.ts';
import { LABEL_NODE_TYPE } from '../../src/api/names.ts';
import { PEERS_NAMESPACE } from '../../src/api/tenant-labels.ts';
import { NETWORK_NAMESPACE } from '../../src/deploy/program.ts';
import { type Field, orNothing, VALUE_NAMES, VALUES } from '../../src/deploy/installation/values.ts';
import { VERSION } from '../../src/version.ts';
import { MADE, templateFiles } from './chart.ts';

const OUR_NAMESPACES = [SYSTEM_NAMESPACE, AGENTS_NAMESPACE, PEERS_NAMESPACE, NETWORK_NAMESPACE];
const WIDTH = 110;

/** Path from the root of the repository -> whole text. */
export function chartFiles(): Record<string, string> {
  const files: Record<string, string> = {
    'Chart.yaml': chart(),
    'values.yaml': values(),
    'values.schema.json': JSON.stringify(schema(), null, 2),
    'templates/NOTES.txt': NOTES,
    'templates/checks.yaml': checks(),
    ...templateFiles(),
  };
  return Object.fromEntries(Object.entries(files).map(([path, text]) => [`deploy/chart/${path}`, text]));
}

const chart = (): string => `# ${MADE}
apiVersion: v2
name: tributary
description: Liquid computing for Kubernetes, a foreign cluster as a virtual node of your own
type: application
version: ${VERSION}
appVersion: '${VERSION}'
kubeVersion: '>=1.30.0-0'
`;

const values = (): string =>
  [
    `# ${MADE}`,
    "# The same names and meanings as those of `tributary install --values`. '', [] and 0 mean: not chosen.",
    '',
    ...VALUE_NAMES.map((name) => {
      const { what, default: value } = VALUES[name];
      return `${wrapped(what).join('\n')}\n${name}: ${JSON.stringify(value)}\n`;
    }),
  ].join('\n');

function wrapped(text: string): string[] {
  const lines = ['#'];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line.length + word.length >= WIDTH) lines.push(`# ${word}`);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}

function schemaOf(field: Field): object {
  const common = { description: field.what, default: field.default };
  switch (field.kind) {
    case 'text':
      return { ...common, type: 'string', ...patternOf(field) };
    case 'choice':
      return { ...common, type: 'string', enum: field.choices };
    case 'number':
      return { ...common, type: 'integer', minimum: field.least, maximum: field.most };
    case 'switch':
      return { ...common, type: 'boolean' };
    default:
      return {
        ...common,
        type: 'array',
        items: {
          type: 'string',
          minLength: 1,
          ...(field.form !== undefined && { pattern: field.form.pattern }),
        },
      };
  }
}

/** A template says what to do where the image is missing; a schema could only say that it does not match. */
const patternOf = ({ default: value, form }: Extract<Field, { kind: 'text' }>): { pattern?: string } =>
  form === undefined ? {} : { pattern: (value === '' ? orNothing(form) : form).pattern };

const schema = (): object => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: `Values of the chart of Tributary. ${MADE}`,
  type: 'object',
  additionalProperties: false,
  properties: {
    ...Object.fromEntries(VALUE_NAMES.map((name) => [name, schemaOf(VALUES[name])])),
    // Helm adds it to the values of every chart that is part of another one.
    global: { type: 'object' },
  },
  if: { properties: { peeringService: { const: 'ClusterIP' } } },
  // oxlint-disable-next-line unicorn/no-thenable -- JSON Schema calls it so.
  then: { properties: { peeringNodePort: { const: 0 } } },
});

const checks = (): string => `{{- /* ${MADE} */}}
{{- if not .Values.image }}
{{- fail "image is not set: no image is published yet; build one with 'make image' and name it with --set image=NAME" }}
{{- end }}
{{- if and .Values.oneProcess .Values.network }}
{{- $nodes := list }}
{{- range (lookup "v1" "Node" "" "").items }}
{{- if not (hasKey (.metadata.labels | default dict) ${JSON.stringify(LABEL_NODE_TYPE)}) }}
{{- $nodes = append $nodes .metadata.name }}
{{- end }}
{{- end }}
{{- if gt (len $nodes) 1 }}
{{- fail (printf "one process sets up the network of its own node only, and this cluster has %d: %s. Leave oneProcess false, or build no tunnels: network=false" (len $nodes) (join ", " $nodes)) }}
{{- end }}
{{- end }}
{{- if has .Release.Namespace (list ${OUR_NAMESPACES.map((name) => JSON.stringify(name)).join(' ')}) }}
{{- fail (printf "the release cannot be in namespace %s, which is a part of it; take another one, such as kube-system or default" .Release.Namespace) }}
{{- end }}
`;

const NOTES = `Tributary is being started in this cluster, under the name {{ .Values.clusterName }}.

  kubectl -n ${SYSTEM_NAMESPACE} rollout status deployment/tributary-cluster
  tributary status                           # where everything stands, and what is missing
  tributary discover                         # clusters that can be seen
  tributary peer --to-context CONTEXT        # peer with one that is in your kubeconfig, too
  tributary offload NAMESPACE                # let the pods of a namespace run there
{{- if .Values.dashboard }}
  tributary dashboard                        # all of it on a page
{{- else }}

For a page that shows all of it, with tributary dashboard (this needs Helm 3.14 or newer):

  helm upgrade {{ .Release.Name }} CHART --namespace {{ .Release.Namespace }} --reset-then-reuse-values --set dashboard=true
{{- end }}

{{- if and (eq .Values.peeringService "ClusterIP") (not .Values.advertise) }}

Other clusters cannot dial this one (peeringService is ClusterIP). It can peer with those that can be dialled.
{{- end }}

Nothing is lent before a SharingPolicy says so, and nothing is borrowed before an AcceptancePolicy or a person does (tributary peer
sets outgoing: Enabled).

To remove it:

  helm uninstall {{ .Release.Name }} --namespace {{ .Release.Namespace }} --wait --timeout 20m

A Job in ${SYSTEM_NAMESPACE} first brings pods home, ends peerings and cleans hosts. If it fails, nothing is removed: mend what
its log says, and repeat the command.
`;

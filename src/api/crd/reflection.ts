import type { ReflectionRule } from '../reflection.ts';
import { choice, objectOf, setOf, type Schema } from './schema.ts';

const GROUP = '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$';
const RESOURCE = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$';

export const apiGroup = (description: string): Schema => ({
  type: 'string',
  description,
  maxLength: 253,
  pattern: GROUP,
});
export const apiResource = (description: string): Schema => ({
  type: 'string',
  description,
  minLength: 1,
  maxLength: 63,
  pattern: RESOURCE,
});

export const reflectionRules: Schema = {
  type: 'array',
  description:
    'Which objects of the namespace are copied to the foreign cluster. Without a rule: ConfigMaps and ' +
    'Secrets that remote pods refer to, all Services with their endpoints, all Ingresses, all NetworkPolicies, ' +
    'and nothing else. Further kinds, custom resources included, need a provider that lets them in (SharingPolicy ' +
    'reflectableKinds).',
  maxItems: 32,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['group', 'resource'],
  items: {
    ...objectOf<ReflectionRule>('One kind.', ['resource', 'policy'], {
      group: { ...apiGroup('API group; empty for the core group.'), default: '' },
      resource: apiResource('Plural name, as `kubectl api-resources` shows it, for example configmaps.'),
      version: {
        type: 'string',
        description: 'Version of the API, for kinds that Tributary has no rules of its own for; default v1.',
        pattern: '^v[0-9]+((alpha|beta)[0-9]+)?$',
        maxLength: 32,
      },
      policy: choice(
        'Referenced: objects that remote pods refer to (configmaps and secrets only). All: every object. ' +
          'OptIn: objects ' +
          'with the annotation tributary.dev/reflect: "true". None: no object. With Referenced and All an object with ' +
          'tributary.dev/reflect: "false" stays home. Secrets that hold service-account tokens are never copied because of All.',
        ['Referenced', 'All', 'OptIn', 'None'],
      ),
      drop: setOf(
        'Fields that are not copied, as paths: spec.clusterName, metadata.annotations.example\\.com/owner. Of metadata ' +
          'only labels and annotations can be named; nothing else of it is ever copied.',
        32,
        { type: 'string', description: 'One path.', minLength: 1, maxLength: 512 },
      ),
    }),
    'x-kubernetes-validations': [
      {
        rule: "self.policy != 'Referenced' || (self.group == '' && self.resource in ['configmaps', 'secrets'])",
        message: 'Referenced is for configmaps and secrets only',
        reason: 'FieldValueInvalid',
      },
      {
        rule: "!(self.resource in ['pods', 'endpoints', 'endpointslices', 'events', 'serviceaccounts', 'namespaces', 'nodes', 'persistentvolumeclaims'] && self.group in ['', 'discovery.k8s.io', 'events.k8s.io'])",
        message: 'this kind is carried across by Tributary itself, or never',
        reason: 'FieldValueForbidden',
      },
      {
        rule: "self.group != 'rbac.authorization.k8s.io' && self.group != 'tributary.dev' && !self.group.endsWith('.tributary.dev') && self.group != 'admissionregistration.k8s.io'",
        message: 'kinds of this group stay in their cluster',
        reason: 'FieldValueForbidden',
      },
    ],
  },
};

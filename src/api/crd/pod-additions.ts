import { NAME_PREFIX } from '../names.ts';
import type { PodAdditions } from '../pod-additions.ts';
import { labels, toleration } from './common.ts';
import { dnsName, listOf, objectOf, type Schema } from './schema.ts';

const MOST = 32;

/** Keys of our own say whose a pod is, and what it has been given. */
const notOurs = (schema: Schema): Schema => ({
  ...schema,
  'x-kubernetes-validations': [
    {
      rule: `self.all(key, !key.startsWith('${NAME_PREFIX}'))`,
      message: `keys that begin with ${NAME_PREFIX} are set by this program only`,
      reason: 'FieldValueForbidden',
    },
  ],
});

export const podAdditions = (description: string): Schema =>
  objectOf<PodAdditions>(
    `${description} What the pod itself says comes first, and what the provider forces comes before all. The provider may ` +
      'refuse what is added, as if the pod had said it; the pod then says why. A change applies to pods that are made after it.',
    [],
    {
      nodeSelector: labels(
        'Labels of the nodes in the foreign cluster on which the pods run. The node selector of a pod itself is about nodes ' +
          'here, and does not travel. A label that the provider forces comes first.',
        MOST,
      ),
      tolerations: listOf(
        'Added to those of the pod. A provider takes off what its SharingPolicy does not open (ownTolerations).',
        16,
        toleration,
      ),
      runtimeClassName: dnsName(
        'RuntimeClass of the foreign cluster, for pods that name none. A SharingPolicy with a class of its own replaces it; one ' +
          'without refuses such pods.',
      ),
      labels: notOurs(labels('Labels of the pods over there, beside those that they have here.', MOST)),
      annotations: notOurs({
        type: 'object',
        description: 'Annotations of the pods over there, beside those that they have here.',
        maxProperties: MOST,
        additionalProperties: { type: 'string', description: 'Value of the annotation.', maxLength: 4096 },
      }),
    },
  );

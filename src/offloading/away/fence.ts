/** What RBAC cannot say about the account of the `cluster` role: what it may change of a pod. */
import { forgeFence, isAccount, writes } from '../../api/fence.ts';
import type { Manifest } from '../../api/manifest.ts';
import { ANNOTATION_WHEN_AWAY, LABEL_PEER } from '../../api/names.ts';
import type { AccountRef } from '../../api/rbac.ts';
import { NODE_LIFE_TAINTS } from '../../api/taints.ts';

const same = (field: string): string => `object.${field} == oldObject.${field}`;
const images = (what: string, list: string): string => `${what}.spec.?${list}.orValue([]).map(c, c.image)`;
const annotations = (what: string): string => `${what}.metadata.?annotations.orValue({})`;
const tolerations = (what: string): string => `${what}.spec.?tolerations.orValue([])`;
const LIFE = NODE_LIFE_TAINTS.map((key) => `'${key}'`).join(', ');

/** To be applied before the rights that it limits. */
export const forgeAwayFence = (account: AccountRef): Manifest[] =>
  forgeFence({
    name: 'tributary-when-away',
    user: isAccount(account),
    rules: [writes('', ['pods'], 'UPDATE')],
    validations: [
      [
        `namespaceObject.metadata.?labels[?'${LABEL_PEER}'].orValue('') == ''`,
        'pods of peers are not changed here',
      ],
      [
        `oldObject.spec.?nodeName.orValue('') != '' && ` +
          ['containers', 'initContainers']
            .map((list) => `${images('object', list)} == ${images('oldObject', list)}`)
            .join(' && ') +
          ` && ${same('spec.?activeDeadlineSeconds')} && ${same('spec.?terminationGracePeriodSeconds')}`,
        'of a pod that is on a node, only how long it stays there may be changed',
      ],
      [
        ['labels', 'finalizers', 'ownerReferences'].map((field) => same(`metadata.?${field}`)).join(' && '),
        'labels, finalizers and owners of a pod may not be changed',
      ],
      [
        `${annotations('object')}.all(k, k == '${ANNOTATION_WHEN_AWAY}' || ` +
          `${annotations('oldObject')}[?k].orValue('') == ${annotations('object')}[k]) && ` +
          `${annotations('oldObject')}.all(k, k == '${ANNOTATION_WHEN_AWAY}' || k in ${annotations('object')})`,
        `of the annotations only ${ANNOTATION_WHEN_AWAY} may be changed`,
      ],
      [
        `${tolerations('object')}.all(t, t in ${tolerations('oldObject')} || (t.?key.orValue('') in [${LIFE}] && ` +
          `t.?effect.orValue('') == 'NoExecute'))`,
        'only tolerations of nodes that are not ready may be changed',
      ],
    ],
  });

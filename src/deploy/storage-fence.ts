/** What an agent may write of claims and volumes, in the API server's own words (CEL). */
import { LABEL_PROVIDER, LABEL_VIRTUAL_NODE, STORAGE_PROVISIONER } from '../api/names.ts';

type Validation = readonly [expression: string, message: string];

const SELECTED_NODE = 'volume.kubernetes.io/selected-node';

/** CEL: whether the request is about a volume, or a claim; other validations of a fence leave them alone. */
const IS_VOLUME = "request.resource.resource == 'persistentvolumes'";
const IS_CLAIM = "request.resource.resource == 'persistentvolumeclaims'";
export const IS_STORAGE: string = `(${IS_VOLUME} || ${IS_CLAIM})`;

/**
 * CEL expressions. `isNode` and `isVirtualNode`: whether the agent that asks serves that name. `isProvider`: whether it is the
 * agent of that ClusterID.
 */
interface Served {
  isNode: (name: string) => string;
  isVirtualNode: (name: string) => string;
  isProvider: (clusterID: string) => string;
}

/**
 * A volume that an agent creates must match no real node, which would mount one of its own directories for it, and must be
 * bound to a claim that the agent is responsible for. In a claim, an agent may only remove the choice of its own node.
 */
export function storageValidations(served: Served): Validation[] {
  const about = (condition: string, expression: string): string => `!(${condition}) || (${expression})`;
  const both = (of: (volume: string) => string): string =>
    `(object == null || (${of('object')})) && (oldObject == null || (${of('oldObject')}))`;
  return [
    [about(IS_VOLUME, both(isOurs)), `an agent may write volumes of ${STORAGE_PROVISIONER} only`],
    [
      about(
        IS_VOLUME,
        both((volume) => isPlaced(volume, served)),
      ),
      'a volume of an agent has its place on the virtual nodes that it serves, and nowhere else',
    ],
    [
      about(
        `${IS_VOLUME} && object != null`,
        "has(object.spec.claimRef) && authorizer.group('').resource('persistentvolumeclaims')" +
          ".namespace(object.spec.claimRef.?namespace.orValue('')).check('update').allowed()",
      ),
      'a volume of an agent is for a claim in a namespace that is offloaded to it',
    ],
    [
      about(
        IS_CLAIM,
        'object.spec == oldObject.spec && ' +
          ['labels', 'finalizers', 'ownerReferences']
            .map((field) => `object.metadata.?${field} == oldObject.metadata.?${field}`)
            .join(' && '),
      ),
      'an agent changes nothing of a claim but the node that was chosen for it',
    ],
    [
      about(IS_CLAIM, isUnselection(served)),
      'an agent may give a claim back that was given to its node, and nothing else',
    ],
  ];
}

const isOurs = (volume: string): string =>
  `${volume}.metadata.?annotations[?'pv.kubernetes.io/provisioned-by'].orValue('') == '${STORAGE_PROVISIONER}' && ` +
  `${volume}.spec.?local.path.orValue('').startsWith('/var/lib/tributary/remote/')`;

function isPlaced(volume: string, { isVirtualNode, isProvider }: Served): string {
  const terms = `${volume}.spec.nodeAffinity.required.nodeSelectorTerms`;
  return (
    `has(${volume}.spec.nodeAffinity) && has(${volume}.spec.nodeAffinity.required) && ${terms}.size() == 1 && ` +
    `${terms}.all(t, !has(t.matchFields) && t.?matchExpressions.orValue([]).size() == 1 && t.matchExpressions.all(e, ` +
    `e.operator == 'In' && e.?values.orValue([]).size() == 1 && (` +
    `(e.key == '${LABEL_VIRTUAL_NODE}' && e.values.all(v, ${isVirtualNode('v')})) || ` +
    `(e.key == '${LABEL_PROVIDER}' && e.values.all(v, ${isProvider('v')})))))`
  );
}

function isUnselection({ isNode }: Served): string {
  const [now, before] = ['object', 'oldObject'].map((one) => `${one}.metadata.?annotations.orValue({})`);
  return (
    `${now}.all(k, k in ${before} && ${now}[k] == ${before}[k]) && ` +
    `${before}.all(k, k in ${now} || (k == '${SELECTED_NODE}' && ${isNode(`${before}[k]`)}))`
  );
}

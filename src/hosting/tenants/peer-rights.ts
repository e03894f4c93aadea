import type { Right } from '../../api/rbac.ts';

/**
 * Everything that a peer may do in this cluster: these rights in each of its tenant namespaces, and nothing anywhere else. These
 * are left out on purpose:
 *
 * - `pods/status`: the kubelets here say what a pod does; a peer that could write it could deceive our own Services;
 * - `pods/eviction`, `pods/binding`, `deletecollection`: `delete`, one pod at a time, is all that a home needs, and
 *   our own scheduler places pods;
 * - `serviceaccounts` and `serviceaccounts/token`: offloaded pods have no account here, their tokens come from home;
 * - `ingresses/status`: our ingress controllers say where an Ingress is reached;
 * - `endpoints`: an older form of EndpointSlices, by which the tenant policy could be bypassed;
 * - events in `events.k8s.io`: the same objects as in the core group, and nothing more;
 * - `resourcequotas`, `namespaces`, `nodes`: a refusal comes back as the answer to the write.
 *
 * Further kinds, which a SharingPolicy names, are in a Role of their own (policies/kinds.ts).
 */
export const PEER_RIGHTS: readonly Right[] = [
  {
    resource: 'pods',
    verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
    why:
      'create, delete: run and end its pods; patch: image, labels and tolerations of a running pod; list, watch: ' +
      'follow their status; get: a pod is believed lost only after a read of its own',
  },
  {
    resource: 'pods/log',
    verbs: ['get'],
    why: '`kubectl logs` at home reads them here',
  },
  {
    resource: 'pods/exec',
    verbs: ['get', 'create'],
    why: '`kubectl exec` and `cp`; get opens the WebSocket, and since 1.35 create is asked for as well',
  },
  {
    resource: 'pods/attach',
    verbs: ['get', 'create'],
    why: '`kubectl attach` and `run -it`; both verbs as for exec',
  },
  {
    resource: 'pods/portforward',
    verbs: ['get', 'create'],
    why: '`kubectl port-forward`; both verbs as for exec',
  },
  {
    resource: 'pods/ephemeralcontainers',
    verbs: ['patch'],
    why: '`kubectl debug` adds a container to a running pod (KEP-277); only through this subresource',
  },
  {
    resource: 'pods/resize',
    verbs: ['patch'],
    why: 'CPU and memory of a running pod (KEP-1287); only through this subresource, and within the quota',
  },
  {
    resource: 'configmaps',
    verbs: ['list', 'watch', 'create', 'update', 'delete'],
    why:
      'copies of what its pods mount: made, kept up to date and removed; update, not patch, so that a copy is ' +
      'replaced only if nobody wrote in between; list, watch: whose a name is, by metadata alone',
  },
  {
    resource: 'secrets',
    verbs: ['list', 'watch', 'create', 'update', 'delete'],
    why:
      'as ConfigMaps, and tokens of home service accounts; who may list can read, so keep no Secret of your own in ' +
      'a tenant namespace',
  },
  {
    resource: 'services',
    verbs: ['list', 'watch', 'create', 'update', 'delete'],
    why:
      'its Services, so that its pods here find each other and those at home by name; the tenant policy holds them to ' +
      'ClusterIP (of a free address, also one that it asks for) and, where the SharingPolicy says so, ExternalName',
  },
  {
    resource: 'endpointslices.discovery.k8s.io',
    verbs: ['list', 'watch', 'create', 'update', 'delete'],
    why:
      'endpoints of its Services outside this cluster; the tenant policy holds them to the prefixes under which this ' +
      'cluster sees the peer, so that none can name an address of ours',
  },
  {
    resource: 'ingresses.networking.k8s.io',
    verbs: ['list', 'watch', 'create', 'update', 'delete'],
    why:
      'its Ingresses, of the classes that the SharingPolicy offers; the tenant policy holds them to the hosts of that ' +
      'policy and to annotations that steer nothing but themselves',
  },
  {
    resource: 'guestnetworkpolicies.tributary.dev',
    verbs: ['list', 'watch', 'create', 'update', 'delete'],
    why:
      'what NetworkPolicies at home say of its pods here; this cluster makes NetworkPolicies from them, within what it lets ' +
      'pods of peers do; the peer itself has no right to NetworkPolicies',
  },
  {
    resource: 'persistentvolumeclaims',
    verbs: ['get', 'list', 'watch', 'create', 'delete'],
    why:
      'its volumes, of the classes and up to the storage that the SharingPolicy lends; the tenant policy holds them to ' +
      'that; none can be changed once made; get: a claim is believed gone only after a read',
  },
  {
    resource: 'leases.coordination.k8s.io',
    names: ['tributary-home'],
    verbs: ['get', 'update'],
    why: 'shows that the home is there, by one Lease that we make; while it is not renewed, our guardian keeps its pods',
  },
  {
    resource: 'events',
    verbs: ['list', 'watch'],
    why:
      'why a pod of its does not start, said by our scheduler and kubelets, is shown at home; of tenant namespaces ' +
      'only, and none can be made',
  },
  {
    resource: 'pods.metrics.k8s.io',
    verbs: ['list'],
    why: 'usage of its pods, for `kubectl top` and autoscalers at home; where no metrics server runs, this line grants nothing',
  },
];

import type { EnvVar, Pod } from '../../api/wire.ts';
import { type AnyContainer, type ReferenceKind, remoteReferenceName } from './references.ts';
import type { ForgeContext } from './context.ts';

/**
 * The container with the environment that its program would see at home. Field references that would show the foreign
 * cluster's value become plain values; references to objects get the object's name over there.
 */
export function forgeEnvironment<C extends AnyContainer>(container: C, home: Pod, context: ForgeContext): C {
  const env = [
    ...apiServerVariables(container, context),
    ...(container.env ?? []).map((variable) => forgeVariable(variable, home, context)),
  ];
  const envFrom = container.envFrom?.map(({ configMapRef, secretRef, ...source }) => ({
    ...source,
    ...(configMapRef && { configMapRef: named('ConfigMap', configMapRef) }),
    ...(secretRef && { secretRef: named('Secret', secretRef) }),
  }));
  return {
    ...container,
    ...(env.length > 0 ? { env } : {}),
    ...(envFrom === undefined ? {} : { envFrom }),
  };
}

function forgeVariable(variable: EnvVar, home: Pod, context: ForgeContext): EnvVar {
  const path = variable.valueFrom?.fieldRef?.fieldPath;
  if (path !== undefined) {
    const value = homeFieldValue(path, home, context);
    return value === undefined ? variable : { name: variable.name, value };
  }
  const { configMapKeyRef, secretKeyRef } = variable.valueFrom ?? {};
  if (configMapKeyRef !== undefined) {
    return { name: variable.name, valueFrom: { configMapKeyRef: named('ConfigMap', configMapKeyRef) } };
  }
  if (secretKeyRef === undefined) return variable;
  return { name: variable.name, valueFrom: { secretKeyRef: named('Secret', secretKeyRef) } };
}

/** The reference, by the name of the object over there. */
const named = <R extends { name?: string }>(kind: ReferenceKind, reference: R): R =>
  reference.name === undefined
    ? reference
    : { ...reference, name: remoteReferenceName(kind, reference.name) };

/** The value of a field that differs between the two clusters; undefined where the foreign kubelet has to set it. */
function homeFieldValue(path: string, home: Pod, context: ForgeContext): string | undefined {
  switch (path) {
    case 'metadata.namespace':
      return home.metadata.namespace;
    case 'metadata.uid':
      return home.metadata.uid;
    case 'spec.nodeName':
      return context.nodeName;
    case 'spec.serviceAccountName':
      return home.spec?.serviceAccountName ?? 'default';
    case 'status.hostIP':
    case 'status.hostIPs':
      return context.nodeAddress;
    default:
      return undefined;
  }
}

/**
 * In-cluster clients find their API server by these variables. The foreign kubelet would set all of them for its own cluster
 * (pkg/kubelet/envvars). Variables that the container itself sets win.
 */
function apiServerVariables(container: AnyContainer, context: ForgeContext): EnvVar[] {
  const server = context.homeApiServer;
  if (server === undefined) return [];
  const own = new Set((container.env ?? []).map((variable) => variable.name));
  const port = String(server.port);
  const url = `tcp://${server.host.includes(':') ? `[${server.host}]` : server.host}:${port}`;
  return [
    { name: 'KUBERNETES_SERVICE_HOST', value: server.host },
    { name: 'KUBERNETES_SERVICE_PORT', value: port },
    { name: 'KUBERNETES_SERVICE_PORT_HTTPS', value: port },
    { name: 'KUBERNETES_PORT', value: url },
    // Named after the port of the Service, which is 443 in every cluster, not after the API server's own port.
    { name: 'KUBERNETES_PORT_443_TCP', value: url },
    { name: 'KUBERNETES_PORT_443_TCP_PROTO', value: 'tcp' },
    { name: 'KUBERNETES_PORT_443_TCP_PORT', value: port },
    { name: 'KUBERNETES_PORT_443_TCP_ADDR', value: server.host },
  ].filter((variable) => !own.has(variable.name));
}

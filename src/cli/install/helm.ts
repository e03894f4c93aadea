/** Whether Helm has made an object: then it is Helm that changes and removes it. */
import { SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { deployments } from '../../api/resources.ts';
import { found } from './objects.ts';
import type { InstallSession } from './waiting.ts';

export interface HelmRelease {
  readonly name: string;
  readonly namespace: string;
}

export async function helmRelease(session: InstallSession): Promise<HelmRelease | undefined> {
  const role = await found(session, deployments, { namespace: SYSTEM_NAMESPACE, name: 'tributary-cluster' });
  return releaseOf(role?.metadata.annotations ?? {});
}

/** By the annotations of an object. */
export function releaseOf(annotations: Readonly<Record<string, string>>): HelmRelease | undefined {
  const { 'meta.helm.sh/release-name': name, 'meta.helm.sh/release-namespace': namespace } = annotations;
  return name === undefined || namespace === undefined ? undefined : { name, namespace };
}

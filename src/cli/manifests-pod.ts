/** What people choose of our own pods beside what their manifests are forged from. Pure. */
import type { Manifest } from '../api/manifest.ts';
import type { Container, PodSpec } from '../api/wire.ts';
import { TributaryError } from '../lib/errors.ts';

type PodManifest = Manifest & { spec: { template: { spec: PodSpec } } };

const isPodManifest = (manifest: Manifest): manifest is PodManifest =>
  manifest.kind === 'Deployment' || manifest.kind === 'DaemonSet';

/** The first container of a pod of ours is the program. */
function withProgram(manifest: Manifest, change: (program: Container) => Container): Manifest {
  if (!isPodManifest(manifest)) return manifest;
  const { spec } = manifest;
  const [program, ...others] = spec.template.spec.containers;
  if (program === undefined) return manifest;
  const pod = { ...spec.template.spec, containers: [change(program), ...others] };
  return { ...manifest, spec: { ...spec, template: { ...spec.template, spec: pod } } } as Manifest;
}

export const withArguments = (manifests: readonly Manifest[], args: readonly string[]): Manifest[] =>
  manifests.map((manifest) =>
    withProgram(manifest, (program) => ({ ...program, args: [...(program.args ?? []), ...args] })),
  );

/** The port `name` with its option `--name-port`; Services, probes and policies know it by its name, and follow. */
export function withPort(manifests: readonly Manifest[], name: string, port: number): Manifest[] {
  const option = `--${name}-port`;
  if (!(port > 0)) throw new TributaryError('Invalid', `${option} must be from 1 to 65535, not "${port}"`);
  return manifests.map((manifest) =>
    withProgram(manifest, ({ args = [], ports = [], ...program }) => {
      const other = ports.find((one) => one.containerPort === port && one.protocol !== 'UDP');
      if (other !== undefined && other.name !== name) {
        throw new TributaryError('Invalid', `${option}: port ${port} is taken: it is "${other.name}"`);
      }
      const at = args.indexOf(option);
      return {
        ...program,
        args: at === -1 ? [...args, option, `${port}`] : args.with(at + 1, `${port}`),
        ports: ports.map((one) => (one.name === name ? { ...one, containerPort: port } : one)),
      };
    }),
  );
}

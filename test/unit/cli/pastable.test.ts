import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { foreignClusters } from '../../../src/api/foreign-cluster.ts';
import { PROGRAM } from '../../../src/cli/cli.ts';
import type { CommandSpec } from '../../../src/cli/command.ts';
import { doctorCommand } from '../../../src/cli/doctor/doctor.ts';
import { ON_CLUSTERS, pastableAt } from '../../../src/cli/pastable.ts';
import { peerCommand } from '../../../src/cli/peering/peer-command.ts';
import { unpeerCommand } from '../../../src/cli/peering/unpeer.ts';
import { CliWorld } from './support/cli-world.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const atRome = pastableAt({ kubeconfig: undefined, context: 'rome' });

/** Whether it, or a command below it, speaks to a cluster. */
const speaks = ({ options = {}, children = [] }: CommandSpec): boolean =>
  Object.hasOwn(options, 'context') || children.some(({ spec }) => speaks(spec));

test('the commands are those that there are', () => {
  const found = (PROGRAM.children ?? []).map(({ spec }) => spec).filter(speaks);
  // Its roles take the option for themselves; pods call it.
  const names = found.map(({ name }) => name).filter((name) => name !== 'run');
  expect(ON_CLUSTERS).toEqual(names.toSorted());
});

test('without options nothing changes', () => {
  const text = 'see: tributary peerings';
  expect(pastableAt({ kubeconfig: undefined, context: undefined })(text)).toBe(text);
});

describe('with --context rome', () => {
  test.each([
    ['see: tributary peerings', 'see: tributary --context rome peerings'],
    [
      'tributary policy share x; tributary id',
      'tributary --context rome policy share x; tributary --context rome id',
    ],
    [
      'kubectl -n a delete secret b; kubectl -n a rollout restart deployment/c',
      'kubectl --context rome -n a delete secret b; kubectl --context rome -n a rollout restart deployment/c',
    ],
    [
      'tributary manifests crds | kubectl apply --server-side -f -',
      'tributary manifests crds | kubectl --context rome apply --server-side -f -',
    ],
    ['run helm upgrade ours --namespace x', 'run helm --kube-context rome upgrade ours --namespace x'],
  ])('%s', (text, wanted) => {
    expect(atRome(text)).toBe(wanted);
    // Once is enough.
    expect(atRome(wanted)).toBe(wanted);
  });

  test.each([
    'tributary 0.1.0',
    'no pod of tributary is here',
    'kubectl is not on the PATH',
    'tributary --context milan install',
    'ConfigMap tributary-system/tributary status',
    'Its administrator has to approve, over there: tributary approve peeringrequest x',
    'Over there: tributary peer ENDPOINT --token -, or, to be tethered, tributary tether CLUSTER --token -',
  ])('stays: %s', (text) => {
    expect(atRome(text)).toBe(text);
  });

  test('what is over there ends with its sentence', () => {
    expect(atRome('over there: tributary token create; here: tributary peer X --token -')).toBe(
      'over there: tributary token create; here: tributary --context rome peer X --token -',
    );
    expect(atRome('Over there: tributary doctor. To wait: tributary status')).toBe(
      'Over there: tributary doctor. To wait: tributary --context rome status',
    );
  });
});

test('a shell takes each value for one word', () => {
  const pastable = pastableAt({ kubeconfig: "/home/ann's files/k", context: 'arn:aws:eks/rome' });
  expect(pastable('tributary id')).toBe(
    String.raw`tributary --kubeconfig '/home/ann'\''s files/k' --context arn:aws:eks/rome id`,
  );
});

describe('commands of the program', () => {
  let world: CliWorld;
  beforeEach(() => {
    world = CliWorld.start();
    world.others.set('rome', world.api);
  });
  afterEach(async () => world.stop());

  test('the doctor’s remedies, also for programs', async () => {
    // The simulated API server has no /version.
    const run = 'kubectl --context rome get --raw /version';
    expect((await world.run(doctorCommand, '--context rome')).out).toContain(`        run: ${run}\n`);
    const { out } = await world.run(doctorCommand, '--context rome -o json');
    expect(JSON.parse(out)).toMatchObject({ findings: [{ run }] });
  });

  test('errors', async () => {
    const { err } = await world.run(unpeerCommand, 'nobody --context rome --kubeconfig k');
    expect(err).toContain('peer with it: tributary --kubeconfig k --context rome peer ENDPOINT');
  });

  test('what stays to be done', async () => {
    world.seed(foreignClusters, { metadata: { name: 'milan' }, spec: { clusterID: MILAN } });
    const { err } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN} --context rome --timeout 1s`);
    expect(err).toContain('To see why it is not: kubectl --context rome describe foreigncluster milan\n');
  });
});

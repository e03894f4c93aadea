import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { parse, stringify } from 'yaml';

import { nodes, pods } from '../../../../src/api/resources.ts';
import { installCommand, upgradeCommand } from '../../../../src/cli/install/install.ts';
import { soon } from '../../../support/settle.ts';
import type { CliWorld } from '../support/cli-world.ts';
import { pulled, startCluster, statusOf } from './support/cluster.ts';

/** Installing over what runs: the controllers of the API server are played here. */

let world: CliWorld;
let states: Map<string, object>;
let stuck: Map<string, object>;

beforeEach(() => {
  ({ world, states, stuck } = startCluster());
});
afterEach(async () => world.stop());

function imageOf(role: string): unknown {
  const namespace = role === 'tributary-cluster' ? 'tributary-system' : 'tributary-network';
  const kind = role === 'tributary-node' ? 'daemonsets.apps' : 'deployments.apps';
  const object = world.api.storage.get(kind, `${namespace}/${role}`) as unknown as
    { spec: { template: { spec: { containers: { image: string }[] } } } } | undefined;
  return object?.spec.template.spec.containers[0]?.image;
}
const images = (): unknown[] => ['tributary-cluster', 'tributary-gateway', 'tributary-node'].map(imageOf);
const recorded = (): unknown => {
  const map = world.api.storage.get('configmaps', 'tributary-system/tributary-installation');
  const { values = '' } = (map?.['data'] ?? {}) as { values?: string };
  return (parse(values) as { image: string }).image;
};
/** As another version would have written it. */
function record(more: object): void {
  const map = world.api.storage.get('configmaps', 'tributary-system/tributary-installation');
  if (map === undefined) throw new Error('nothing is recorded');
  const { values = '', ...rest } = map['data'] as { values?: string };
  const data = { ...rest, values: stringify({ ...(parse(values) as object), ...more }) };
  world.api.storage.update('configmaps', { ...map, data });
}
const install = async (): Promise<void> => {
  expect(await world.run(installCommand, 'rome --image t:1 --yes')).toMatchObject({ code: 0, err: '' });
};

test('where nothing runs, no image is tried, and an interrupted installation can be gone on with', async () => {
  stuck.set('tributary-cluster', {});
  const { code, err } = await world.run(installCommand, 'rome --image t:1 --yes --timeout 5s');
  expect(code).toBe(1);
  expect(err).toContain('All objects are applied, and nothing was taken back');
  expect([images(), recorded()]).toEqual([['t:1', 't:1', 't:1'], 't:1']);
});

test('who is interrupted is told how to go on', async () => {
  stuck.set('tributary-cluster', {});
  const running = world.run(installCommand, 'rome --image t:1 --yes --timeout 24h');
  await soon('roles are applied', () => imageOf('tributary-cluster') !== undefined);
  world.abort.abort(new Error('got SIGINT'));
  expect(await running).toMatchObject({
    code: 1,
    err:
      'A part of it is in the cluster. To go on, run the same command again. To take it out: tributary uninstall\n' +
      'interrupted\n',
  });
});

test('an image that cannot be pulled is told, and no role is touched', async () => {
  await install();
  states.set('t:none', pulled('t:none'));
  const { code, out, err } = await world.run(upgradeCommand, '--image t:none --yes');
  expect([code, err]).toEqual([
    1,
    'image t:none cannot be pulled: ImagePullBackOff: Back-off pulling image "t:none". Nothing was changed, and what runs here ' +
      'runs on. Name another one with --image\n',
  ]);
  expect(out).not.toContain('applied');
  expect([images(), recorded()]).toEqual([['t:1', 't:1', 't:1'], 't:1']);
  expect(world.api.storage.get('pods', 'tributary-system/tributary-image-check')).toBeUndefined();
});

test('an image that is not ours is told, too', async () => {
  await install();
  states.set('nginx:1', { terminated: { exitCode: 127, message: 'version: not found\n' } });
  const { code, err } = await world.run(upgradeCommand, '--image nginx:1 --yes');
  expect([code, err]).toEqual([
    1,
    'image nginx:1 does not run Tributary (exit code 127): version: not found. Nothing was changed, and what runs here runs on\n',
  ]);
  expect(images()).toEqual(['t:1', 't:1', 't:1']);
});

test('what cannot be found out in time is told, and is no reason to stop', async () => {
  await install();
  states.set('t:2', {});
  const { code, err } = await world.run(upgradeCommand, '--image t:2 --yes --timeout 3s');
  expect([code, err]).toEqual([0, '  it is not known whether image t:2 can be pulled: Pending\n']);
  expect([images(), recorded()]).toEqual([['t:2', 't:2', 't:2'], 't:2']);
});

test('a role that does not become ready: the next is not touched, and one command goes back', async () => {
  await install();
  stuck.set('tributary-gateway', {});
  world.seed(pods, {
    metadata: {
      namespace: 'tributary-network',
      name: 'gateway-x',
      labels: { 'app.kubernetes.io/instance': 'tributary-gateway' },
    },
    status: statusOf(pulled('t:2')),
  });
  const began = world.api.log.length;
  const { code, err } = await world.run(upgradeCommand, '--image t:2 --context rome --yes');
  expect(code).toBe(1);
  // A minute at most, and not the five minutes that a role may take.
  expect(err).toMatch(
    /^waited 3\d s for tributary-gateway to be ready, without success: 0 of 1 pods are; ImagePullBackOff: Back-off pulling image "t:2"\. /,
  );
  expect(err).toContain(
    'To go back to the values of before (image t:1): tributary --context rome upgrade --yes\n',
  );
  expect([images(), recorded()]).toEqual([['t:2', 't:2', 't:1'], 't:1']);
  expect(world.api.log.slice(began).some((line) => line.includes('daemonsets/tributary-node'))).toBe(false);

  stuck.clear();
  world.api.storage.remove('pods', 'tributary-network/gateway-x');
  expect(await world.run(upgradeCommand, '--context rome --yes')).toMatchObject({ code: 0, err: '' });
  expect([images(), recorded()]).toEqual([['t:1', 't:1', 't:1'], 't:1']);
});

test('without a terminal somebody has to say that it is wanted, for install and for upgrade', async () => {
  const refused = {
    code: 2,
    err: 'there is no terminal to ask on, so nothing was changed; a script has to add --yes\n',
  };
  const first = await world.run(installCommand, 'rome --image t:1');
  expect(first).toMatchObject(refused);
  // What was found out is shown all the same.
  expect(first.out).toContain('cluster          rome, Kubernetes v1.36.3');
  expect(world.api.count(/^(PUT|PATCH|DELETE)/)).toBe(0);
  await install();
  expect(await world.run(upgradeCommand, '--image t:2')).toMatchObject(refused);
  world.answers = ['n', 'y'];
  expect(await world.run(upgradeCommand, '--image t:2')).toMatchObject({
    code: 1,
    err: 'Nothing was changed.\n',
  });
  expect(images()).toEqual(['t:1', 't:1', 't:1']);
  expect((await world.run(upgradeCommand, '--image t:2')).code).toBe(0);
  expect(world.asked).toEqual(['Install this? [y/N] ', 'Install this? [y/N] ']);
});

test('where no pod of a role can be made, the wait says why', async () => {
  await install();
  stuck.set('tributary-cluster', {
    conditions: [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'quota' }],
  });
  const { code, err } = await world.run(upgradeCommand, '--yes --timeout 5s');
  expect(code).toBe(1);
  expect(err).toContain('without success: 0 of 1 pods are; FailedCreate: quota. ');
});

test('further arguments of a role are given after =, and one that it does not have is refused before anything is written', async () => {
  const refused = await world.run(installCommand, 'rome --image t:1 --cluster-args=--no-such,1 --yes');
  expect(refused).toMatchObject({ code: 2, out: '' });
  expect(refused.err).toMatch(/^--cluster-args: "--no-such" is no option of role cluster; .*\n$/);
  expect(images()).toEqual([undefined, undefined, undefined]);
  const line = 'rome --image t:1 --cluster-args=--credential-seconds,7200 --yes';
  expect(await world.run(installCommand, line)).toMatchObject({ code: 0, err: '' });
  const role = world.api.storage.get('deployments.apps', 'tributary-system/tributary-cluster');
  expect(JSON.stringify(role)).toContain('"--credential-seconds","7200"');
  expect((await world.run(upgradeCommand, '--node-args=--drain-seconds,1 --yes')).err).toMatch(
    /^--node-args: "--drain-seconds" is no option of role node; /,
  );
});

test('values that only a newer version knows are left out by the older program, and named', async () => {
  await install();
  record({ teleports: true, speed: 'c' });
  const { code, out, err } = await world.run(upgradeCommand, '--yes');
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain('\nnot known to this version, left out: teleports, speed\n');
  expect((await world.run(upgradeCommand, '--yes')).out).not.toContain('left out');
});

test('a second install says what it resets before it asks, and how to keep it; an upgrade keeps it', async () => {
  const options = '--image t:1 --log-level debug --reserved-cidrs 10.9.0.0/16,10.10.0.0/16 --yes';
  expect(await world.run(installCommand, `rome ${options}`)).toMatchObject({ code: 0, err: '' });
  world.answers = ['n'];
  const { out } = await world.run(installCommand, '--image t:2 --context rome');
  expect(out).toContain(
    '\nback to default: --cluster-name (was rome), --log-level (was debug), --reserved-cidrs (was 10.9.0.0/16,10.10.0.0/16). ' +
      'To keep what is not named, run instead: tributary --context rome upgrade\n',
  );
  for (const line of [`rome ${options}`, 'rome --image t:2 --log-level info --reserved-cidrs= --yes'])
    expect((await world.run(installCommand, line)).out).not.toContain('back to default');
  expect((await world.run(upgradeCommand, '--yes')).out).not.toContain('back to default');
});

test('one process and a node that was added later: any upgrade says what is recorded, and what to do', async () => {
  expect(await world.run(installCommand, 'rome --image t:1 --one-process true --yes')).toMatchObject({
    code: 0,
  });
  for (const name of ['a', 'b']) world.seed(nodes, { metadata: { name } });
  const { code, err } = await world.run(upgradeCommand, '--log-level debug --yes');
  expect(code).toBe(1);
  expect(err).toContain('this installation is recorded with --one-process true. But one process sets up');
  expect((await world.run(upgradeCommand, '--one-process true --yes')).err).toMatch(/^one process sets up/);
  expect(await world.run(upgradeCommand, '--one-process false --yes')).toMatchObject({ code: 0, err: '' });
});

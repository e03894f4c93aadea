import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { deployments } from '../../../../src/api/resources.ts';
import { virtualNodes, type VirtualNode } from '../../../../src/api/virtual-node.ts';
import { agentsUnderWay } from '../../../../src/cli/install/agents.ts';
import { installCommand, upgradeCommand } from '../../../../src/cli/install/install.ts';
import { defaultValues } from '../../../../src/deploy/installation/values.ts';
import type { CliWorld } from '../support/cli-world.ts';
import { startCluster } from './support/cluster.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const OWN = `tributary-peer-${MILAN}`;

const nodeOf = (reason: string): object => ({
  metadata: { name: 'milan', labels: { 'tributary.dev/provider': MILAN } },
  spec: { resources: {} },
  status: { conditions: [{ type: 'Ready', status: 'False', reason, message: '' }] },
});
const agent = (name: string, image = 't:1'): object => ({
  metadata: { namespace: 'tributary-agents', name, labels: { 'app.kubernetes.io/name': 'tributary' } },
  spec: { template: { spec: { containers: [{ name: 'a', image }] } } },
  status: { observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1 },
});

describe('what of the agents is under way', () => {
  type Deployments = Parameters<typeof agentsUnderWay>[2];
  const underWay = (chosen: object, there: readonly object[], reason = 'AsExpected'): string[] =>
    agentsUnderWay(
      { ...defaultValues(), image: 't:1', ...chosen },
      [nodeOf(reason) as VirtualNode],
      there as Deployments,
    );

  test('a pod for each provider', () => {
    expect(underWay({}, [agent(OWN)])).toEqual([]);
    expect(underWay({}, [agent(OWN)], 'AgentNotRunning')).toEqual(['virtual node milan: AgentNotRunning']);
    expect(underWay({}, [agent('tributary-peers')])).toEqual([
      `Deployment ${OWN} is not there yet`,
      'Deployment tributary-peers is still there',
    ]);
  });

  test('one for all', () => {
    expect(underWay({ agents: 'shared' }, [agent('tributary-peers')])).toEqual([]);
    expect(underWay({ agents: 'shared' }, [agent(OWN), agent('tributary-peers')])).toEqual([
      `Deployment ${OWN} is still there`,
    ]);
  });

  test('none within the one process', () => {
    expect(underWay({ agents: 'shared', oneProcess: true }, [])).toEqual([]);
    expect(underWay({ oneProcess: true }, [agent(OWN)])).toEqual([`Deployment ${OWN} is still there`]);
  });

  test('another image, unless agents have one of their own', () => {
    expect(underWay({}, [agent(OWN, 't:0')])).toEqual([`Deployment ${OWN} is not ready yet`]);
    expect(underWay({ clusterArgs: ['--agent-image', 't:0'] }, [agent(OWN, 't:0')])).toEqual([]);
  });

  test('a provider that is away is none of it', () => {
    expect(underWay({}, [agent(OWN)], 'Unreachable')).toEqual([]);
  });
});

describe('an upgrade', () => {
  let world: CliWorld;
  beforeEach(async () => {
    ({ world } = startCluster());
    expect(await world.run(installCommand, 'rome --image t:1 --yes')).toMatchObject({ code: 0 });
    world.seed(virtualNodes, nodeOf('AsExpected'));
    world.seed(deployments, agent(OWN));
  });
  afterEach(async () => world.stop());

  test('waits for the agents that follow it', async () => {
    // As role `cluster` does it, when the upgrade has looked twice.
    let looks = 0;
    world.api.fault({
      match: ({ method, path }) => {
        const isLook = method === 'GET' && path.includes('/namespaces/tributary-agents/deployments');
        if (isLook && (looks += 1) === 3) {
          world.api.storage.remove('deployments.apps', `tributary-agents/${OWN}`);
          world.seed(deployments, agent('tributary-peers'));
        }
        return false;
      },
      status: 500,
    });
    const { code, out } = await world.run(upgradeCommand, '--agents shared --yes');
    expect(code).toBe(0);
    expect(looks).toBe(3);
    expect(out).toMatch(/ready: agents of 1 virtual node\(s\)\nUpgraded\. /);
  });

  test('says what is still under way where that takes long', async () => {
    const { code, out } = await world.run(upgradeCommand, '--agents shared --yes --context rome');
    expect(code).toBe(0);
    expect(out).toContain(
      `still under way, and goes on by itself: Deployment tributary-peers is not there yet, Deployment ${OWN} is still there. ` +
        'To look: tributary --context rome status\n',
    );
  });
});

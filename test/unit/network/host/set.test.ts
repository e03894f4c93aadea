import { expect, test } from '@jest/globals';

import { withoutIPv6 } from '../../../../src/network/host/set.ts';
import { gatewayPlan } from '../../../../src/network/plan/gateway.ts';
import { nodePlan } from '../../../../src/network/plan/node.ts';
import { gatewayFacts, nodeFacts, peer } from '../plan/facts.ts';

test('a kernel without IPv6 is asked for no route to what a peer has of it, and for all else', () => {
  const both = peer({
    views: [
      { use: 'Pods', prefix: '10.244.0.0/16', as: '100.64.0.0/16' },
      { use: 'Pods', prefix: 'fd00:244::/48', as: 'fd00:900::/48' },
    ],
  });
  for (const plan of [gatewayPlan(gatewayFacts([both])), nodePlan(nodeFacts({ tunnels: [both] }))]) {
    const ipv6 = plan.routes.filter(({ destination }) => destination === 'fd00:900::/48');
    expect(ipv6.length).toBeGreaterThan(0);
    const routes = plan.routes.filter((route) => !ipv6.includes(route));
    expect(withoutIPv6(plan)).toEqual({ ...plan, routes });
  }
});

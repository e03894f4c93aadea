import { expect, test } from '@jest/globals';

import { ANNOTATION_STRATEGY } from '../../../src/api/names.ts';
import type { NamespaceOffloading } from '../../../src/api/namespace-offloading.ts';
import { TRIAL_POD } from '../../../src/doctor/webhook-trial.ts';
import { admit } from '../../../src/offloading/admission/decide.ts';
import { boundPod, cluster, NOW_MS, offloading } from '../offloading/release/support.ts';

const away: NamespaceOffloading = {
  ...offloading({ podStrategy: 'Remote', whenAway: { pods: 'Move', to: 'Home' } }),
  status: {
    clusters: [cluster('milan')],
    heldOff: [{ owner: '*', virtualNode: 'milan', until: new Date(NOW_MS + 60_000).toISOString() }],
  },
};

test.each<[string, NamespaceOffloading]>([
  ['with pods in foreign clusters', offloading({ podStrategy: 'Remote' })],
  ['whose pods stay on real nodes', offloading({ podStrategy: 'Local' })],
  ['whose new pods are kept at home', away],
])('the webhook leaves its mark on the trial of a namespace %s', (_, given) => {
  const facts = { offloading: given, failedNodes: [], isOpen: false, nowMs: NOW_MS };
  const { patch } = admit({ ...TRIAL_POD, metadata: { ...boundPod().metadata, name: '' } }, facts);
  expect(JSON.stringify(patch).replaceAll('~1', '/')).toContain(ANNOTATION_STRATEGY);
});

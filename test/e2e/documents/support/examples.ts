/** The examples that need what milan lends: volumes, GPUs, a site. */
import { block, given, type Reading, until } from './reading.ts';
import { knownAs } from './two-cities.ts';

const NAME = { NAME: knownAs('milan', 'rome') };
const LABEL = 'kubectl --context rome get nodes -l';

export const EXAMPLES: readonly Reading[] = [
  {
    document: 'examples/stateful-set/README.md',
    replace: NAME,
    acts: [
      block('kubectl --context milan apply -k'),
      block('kubectl --context rome apply -k', { prints: /^pod\/db-1 +1\/1 +Running .* milan /m }),
      block('kubectl --context rome -n data exec db-0', { prints: /hello\n.*hello/s }),
      block('kubectl --context rome delete -k'),
    ],
  },
  {
    document: 'examples/gpu-queue/README.md',
    replace: NAME,
    acts: [
      given(
        `kubectl --context milan patch node milan-1 --subresource status -p '{"status":{"capacity":{"nvidia.com/gpu":"2"}}}'`,
      ),
      given(
        'kubectl --context milan label node milan-1 nvidia.com/gpu.present=true nvidia.com/gpu.product=none',
      ),
      block('kubectl --context milan apply -k'),
      until(
        `kubectl --context rome get node milan -o jsonpath='{.status.allocatable}'`,
        /nvidia.com.gpu":"2"/,
      ),
      block('kubectl --context rome get node milan', { prints: /nvidia.com.gpu":"2"/ }),
      block('kubectl --context rome apply -k', {
        blocking: { 'kubectl --context rome -n batch get pods': /^render-\S+ +0\/1 +Completed .* milan /m },
        prints: /part \d on render-/,
      }),
      block('kubectl --context rome delete -k'),
    ],
  },
  {
    document: 'examples/edge-site/README.md',
    replace: NAME,
    acts: [
      block('kubectl --context milan apply -k'),
      until(`${LABEL} example.com/site=harbour`, /^milan +Ready /m),
      block('kubectl --context rome get nodes', { prints: /^milan +Ready .* level \d/ms }),
      block('kubectl --context rome delete -k'),
    ],
  },
];

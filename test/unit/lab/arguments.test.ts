import { describe, expect, test } from '@jest/globals';

import { parseArguments } from '../../../lab/arguments.ts';

describe('parseArguments', () => {
  test('up has two real clusters of one node by default', () => {
    expect(parseArguments(['up'])).toEqual({
      verb: 'up',
      options: {
        name: 'lab',
        workload: 'containers',
        clusters: [
          { name: 'home', nodes: 1, networkPolicies: true },
          { name: 'foreign', nodes: 1, networkPolicies: true },
        ],
      },
    });
  });

  test('nobody enforces policies where that is not wanted', () => {
    expect(parseArguments(['up', '--no-policies', '--clusters', 'home'])).toEqual({
      verb: 'up',
      options: { name: 'lab', workload: 'containers', clusters: [{ name: 'home', nodes: 1 }] },
    });
  });

  test('up takes everything', () => {
    const line = 'up --workload kwok --clusters a,b,c --nodes 3 --no-metrics --name x --directory /data';
    expect(parseArguments(line.split(' '))).toEqual({
      verb: 'up',
      options: {
        name: 'x',
        workload: 'kwok',
        clusters: ['a', 'b', 'c'].map((name) => ({ name, nodes: 3, metricsServer: false })),
        directory: '/data',
      },
    });
  });

  test.each([
    [['down'], { verb: 'down', name: 'lab', force: false }],
    [['down', '--force', '--name', 'a'], { verb: 'down', name: 'a', force: true }],
    [['status', '--name', 'x'], { verb: 'status', name: 'x' }],
    [['kubeconfig', 'home'], { verb: 'kubeconfig', name: 'lab', cluster: 'home' }],
    [['load-image', 'a.tar'], { verb: 'load-image', name: 'lab', image: 'a.tar', clusters: undefined }],
    [
      ['load-image', 'x/web:1', '--clusters', 'home'],
      { verb: 'load-image', name: 'lab', image: 'x/web:1', clusters: ['home'] },
    ],
    [[], { verb: 'help' }],
    [['up', '--help'], { verb: 'help' }],
  ])('%j', (args, expected) => {
    expect(parseArguments(args)).toEqual(expected);
  });

  test.each([
    [['sideways'], 'unknown command sideways'],
    [['kubeconfig'], 'kubeconfig of which cluster?'],
    [['load-image'], 'load which image?'],
    [['kubeconfig', 'home', 'foreign'], 'unexpected foreign'],
    [['up', 'home'], 'unexpected home'],
    [['up', '--nodes', '0'], '--nodes is a number from 1, not 0'],
    [['up', '--nodes', 'many'], '--nodes is a number from 1, not many'],
    [['up', '--workload', 'vm'], '--workload is containers or kwok, not vm'],
    [['up', '--colour'], "Unknown option '--colour'"],
  ])('%j is refused', (args, message) => {
    expect(() => parseArguments(args)).toThrow(message);
  });
});

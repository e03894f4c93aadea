import { expect, test } from '@jest/globals';

import { type Asked, asked, isHeartbeat } from '../../../faults/proxy/fault.ts';

const is = (...words: ('heartbeat' | 'list' | 'watch' | 'write')[]): string[] => words;

const flagsOf = (one: Asked): string[] =>
  Object.entries({
    heartbeat: isHeartbeat(one),
    list: one.isList,
    watch: one.isWatch,
    write: one.isWrite,
  }).flatMap(([name, isSo]) => (isSo ? [name] : []));

test.each([
  // Collections.
  ['GET', '/api/v1/pods', 'pods', is('list')],
  ['GET', '/api/v1/namespaces/shop/pods?limit=500', 'pods', is('list')],
  ['GET', '/apis/apps/v1/namespaces/shop/deployments', 'deployments', is('list')],
  ['GET', '/apis/apps/v1/deployments?limit=1&continue=x', 'deployments', is('list')],
  ['GET', '/api/v1/namespaces', 'namespaces', is('list')],
  ['GET', '/api/v1/namespaces?limit=500', 'namespaces', is('list')],
  ['POST', '/api/v1/namespaces/shop/pods', 'pods', is('write')],
  ['DELETE', '/api/v1/namespaces/shop/pods?labelSelector=a%3Db', 'pods', is('write')],
  // Watches, with and without a name.
  ['GET', '/api/v1/pods?watch=true&resourceVersion=7', 'pods', is('watch')],
  ['GET', '/api/v1/namespaces/shop/pods?resourceVersion=7&watch=1', 'pods', is('watch')],
  ['GET', '/api/v1/pods?watch=false', 'pods', is('list')],
  ['GET', '/api/v1/pods?labelSelector=watch%3Dtrue', 'pods', is('list')],
  ['GET', '/api/v1/pods?labelSelector=x&unwatch=true', 'pods', is('list')],
  // Single objects.
  ['GET', '/api/v1/namespaces/shop/pods/web', 'pods', is()],
  ['PUT', '/api/v1/namespaces/shop/pods/web', 'pods', is('write')],
  ['PATCH', '/api/v1/nodes/milan', 'nodes', is('write')],
  ['GET', '/api/v1/namespaces/shop', 'namespaces', is()],
  ['DELETE', '/api/v1/namespaces/shop', 'namespaces', is('write')],
  ['GET', '/apis/tributary.dev/v1alpha1/virtualnodes/milan', 'virtualnodes', is()],
  // Things of a namespace whose names are also names of subresources.
  ['GET', '/api/v1/namespaces/status/pods', 'pods', is('list')],
  ['GET', '/api/v1/namespaces/namespaces/pods/pods', 'pods', is()],
  // Subresources.
  ['PATCH', '/api/v1/namespaces/shop/pods/web/status', 'pods/status', is('write')],
  ['POST', '/api/v1/namespaces/shop/pods/web/eviction?dryRun=All', 'pods/eviction', is('write')],
  ['GET', '/api/v1/namespaces/shop/pods/web/log?follow=true', 'pods/log', is()],
  ['POST', '/api/v1/namespaces/shop/serviceaccounts/x/token', 'serviceaccounts/token', is('write')],
  ['PUT', '/api/v1/nodes/milan/status', 'nodes/status', is('write')],
  ['GET', '/api/v1/nodes/milan/proxy/stats/summary', 'nodes/proxy', is()],
  ['PUT', '/api/v1/namespaces/shop/finalize', 'namespaces/finalize', is('write')],
  ['GET', '/api/v1/namespaces/shop/status', 'namespaces/status', is()],
  // Reviews are asked for by POST, and change nothing.
  ['POST', '/apis/authentication.k8s.io/v1/tokenreviews', 'tokenreviews', is()],
  ['POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', 'subjectaccessreviews', is()],
  [
    'POST',
    '/apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews',
    'localsubjectaccessreviews',
    is(),
  ],
  ['POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', 'clusterroles', is('write')],
  // Renewals.
  [
    'PUT',
    '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/milan',
    'leases',
    is('heartbeat', 'write'),
  ],
  ['GET', '/apis/coordination.k8s.io/v1/leases?watch=true', 'leases', is('heartbeat', 'watch')],
  // No resources.
  ['GET', '/version', '', is()],
  ['GET', '/readyz?verbose', '', is()],
  ['GET', '/api/v1', '', is()],
  ['GET', '/apis', '', is()],
  ['GET', '/apis/apps/v1', '', is()],
  ['GET', '/openapi/v3/apis/apps/v1', '', is()],
])('%s %s is of "%s" and %j', (method, path, resource, flags) => {
  const one = asked(method, path);
  expect(one).toMatchObject({ method, path, resource });
  expect(flagsOf(one)).toEqual(flags);
});

/**
 * The least that it takes to know what there is: the pods of a node and those of a namespace of another cluster, listed at the same
 * time, each in one answer, parsed as it comes, and dropped. Prints how long that took in milliseconds, without the start of the process.
 *
 *     node bench/pods/raw-list.ts HOME_KUBECONFIG FOREIGN_KUBECONFIG NODE TENANT_NAMESPACE
 */
import { readFile } from 'node:fs/promises';

import { pods } from '../../src/api/resources.ts';
import type { ListOptions } from '../../src/kube/client.ts';
import { createClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';

const [homeFile = '', foreignFile = '', node = '', namespace = ''] = process.argv.slice(2);

async function read(file: string, options: ListOptions): Promise<void> {
  const client = createClient(await parseKubeconfig(await readFile(file, 'utf8')));
  let count = 0;
  for await (const { items } of client.pages(pods, { ...options, limit: 'whole' })) count += items.length;
  await client.close();
  if (count === 0) throw new Error(`${file}: no pods with ${JSON.stringify(options)}`);
}

const began = performance.now();
await Promise.all([
  read(homeFile, { fieldSelector: `spec.nodeName=${node}` }),
  read(foreignFile, { namespace }),
]);
process.stdout.write(String(performance.now() - began));

/**
 * A real API server with the manifests of both sides, applied as people do it: printed by the program, then applied
 * by kubectl.
 */
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import { parseAllDocuments } from 'yaml';

import { binaries } from '../../../lab/binaries.ts';
import type { Cluster } from '../../../lab/cluster.ts';
import type { Lab } from '../../../lab/lab.ts';
import { manifestsCommand } from '../../../src/cli/manifests.ts';
import type { Command } from '../../../src/cli/command.ts';
import { openCluster } from '../../../src/cli/peering/environment.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createClient, type HttpClient } from '../../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../../src/kube/kubeconfig.ts';
import { eventually } from '../eventually.ts';
import { type BorrowedLab, borrowLab } from './borrowed-lab.ts';

/** Returns what a command prints; throws its error output if it fails. */
export async function printed(command: Command, args: string[]): Promise<string> {
  let out = '';
  let err = '';
  const io = { out: (text: string) => void (out += text), err: (text: string) => void (err += text) };
  const { signal } = new AbortController();
  const code = await command.run(args, { io, signal, clock: systemClock, open: openCluster });
  if (code !== 0) throw new Error(err);
  return out;
}

export interface AccountRef {
  namespace: string;
  name: string;
}

export interface Token {
  token: string;
  expirationTimestamp: string;
}

export interface Answer {
  status: number;
  body: string;
}

export type PatchType = 'merge' | 'strategic-merge';

/** One request with somebody's own token; `patch` (default: merge) counts where the method is PATCH. */
export type Caller = (method: string, path: string, body?: object, patch?: PatchType) => Promise<Answer>;

/** As a person would apply it; resolves when the kinds that it defines are served. */
export async function applyYaml(cluster: Cluster, yaml: string): Promise<void> {
  const { kubectl } = await binaries(undefined, ['kubectl']);
  const args = ['--kubeconfig', cluster.kubeconfig, 'apply', '--server-side', '-f', '-'];
  const run = spawnSync(kubectl, args, { input: yaml, encoding: 'utf8' });
  if (run.status !== 0) throw new Error(run.stderr);
  for (const path of definedPaths(yaml)) {
    const isServed = async (): Promise<boolean> => (await cluster.api.call('GET', path)).status === 200;
    await eventually(`${path} is served`, isServed);
  }
}

interface Definition {
  kind?: string;
  spec: { group: string; names: { plural: string }; versions: { name: string; served: boolean }[] };
}

/** Where an API server lists the kinds that this text defines. It answers 404 for a moment after it took a definition. */
function definedPaths(yaml: string): string[] {
  const objects = parseAllDocuments(yaml).map((document) => document.toJS() as Definition | null);
  return objects
    .filter((object) => object !== null)
    .filter(({ kind }) => kind === 'CustomResourceDefinition')
    .flatMap(({ spec: { group, names, versions } }) =>
      versions
        .filter(({ served }) => served)
        .map(({ name }) => `/apis/${group}/${name}/${names.plural}?limit=1`),
    );
}

/** Other files use the same lab with both of its clusters. */
const CLUSTER = 'home';

/**
 * Two control planes that know our kinds. An API server, and the controllers that follow all kinds, work for seconds upon each
 * definition that comes or goes, and nearly every file applies them.
 */
export async function borrowPair(clusters: readonly string[] = ['home', 'foreign']): Promise<BorrowedLab> {
  const furnish = async (lab: Lab): Promise<void> => {
    const yaml = await printed(manifestsCommand, ['crds']);
    await Promise.all(lab.clusters.map(async (cluster) => applyYaml(cluster, yaml)));
  };
  return borrowLab('pair', { furnish, clusters });
}

export class RightsCluster {
  readonly cluster: Cluster;
  readonly #borrowed: BorrowedLab;

  private constructor(borrowed: BorrowedLab) {
    this.#borrowed = borrowed;
    this.cluster = borrowed.lab.cluster(CLUSTER);
  }

  static async up(): Promise<RightsCluster> {
    return new RightsCluster(await borrowPair([CLUSTER]));
  }

  async down(): Promise<void> {
    await this.#borrowed.giveBack();
  }

  async apply(yaml: string): Promise<void> {
    await applyYaml(this.cluster, yaml);
  }

  async tokenOf(account: AccountRef, expirationSeconds = 3600): Promise<Token> {
    const path = `/api/v1/namespaces/${account.namespace}/serviceaccounts/${account.name}/token`;
    const { status, body } = await this.cluster.api.call('POST', path, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds },
    });
    if (status !== 201) throw new Error(`${status} ${body}`);
    return (JSON.parse(body) as { status: Token }).status;
  }

  async admin(): Promise<HttpClient> {
    return createClient(await parseKubeconfig(await readFile(this.cluster.kubeconfig, 'utf8')));
  }

  async clientOf(account: AccountRef): Promise<HttpClient> {
    return this.clientWith((await this.tokenOf(account)).token);
  }

  clientWith(token: string): HttpClient {
    return createClient({
      server: new URL(this.cluster.server),
      ca: this.cluster.pki.authority.cert,
      token: async () => Promise.resolve(token),
    });
  }

  async as(account: AccountRef): Promise<Caller> {
    return this.with((await this.tokenOf(account)).token);
  }

  with(token: string): Caller {
    return async (method, path, body, patch = 'merge') => {
      const text = body === undefined ? '' : JSON.stringify(body);
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      const sent = request(
        new URL(path, this.cluster.server),
        {
          method,
          ca: this.cluster.pki.authority.cert,
          headers: {
            authorization: `Bearer ${token}`,
            'content-type': method === 'PATCH' ? `application/${patch}-patch+json` : 'application/json',
            // For DELETE, Node.js does not set it by itself, and then what it sends is not a valid request.
            ...(body !== undefined && { 'content-length': Buffer.byteLength(text) }),
          },
        },
        (answer) => {
          let got = '';
          answer.setEncoding('utf8').on('data', (chunk: string) => (got += chunk));
          answer.once('end', () => resolve({ status: answer.statusCode ?? 0, body: got }));
        },
      );
      sent.once('error', reject);
      sent.end(text);
      return promise;
    };
  }
}

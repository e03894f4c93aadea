/** Who asks an API server for what: its audit log, which names the user of each request. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { removeAtEnd } from './scratch.ts';

/** One request that has ended, as `audit.k8s.io/v1` describes it. */
interface AuditEvent {
  readonly user?: { readonly username?: string };
  readonly verb?: string;
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string };
  readonly requestReceivedTimestamp?: string;
}

/** Each request once, when it ends. A watch ends when the server closes it, after minutes. */
const POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules: [{ level: Metadata }]
`;

/** The audit of a cluster of a lab. Its files are gone when this process ends, as the lab is. */
export function auditOf(lab: string, cluster: string): Audit {
  const folder = join(tmpdir(), `tributary-bench-${lab}`);
  removeAtEnd(folder);
  return new Audit(join(folder, cluster));
}

export class Audit {
  /** For kube-apiserver. */
  readonly flags: readonly string[];
  readonly #log: string;

  /** Keeps its files in that folder. */
  constructor(directory: string) {
    mkdirSync(directory, { recursive: true });
    const policy = join(directory, 'policy.yaml');
    writeFileSync(policy, POLICY);
    this.#log = join(directory, 'audit.log');
    this.flags = [`--audit-policy-file=${policy}`, `--audit-log-path=${this.#log}`];
  }

  /** Requests received in that time (milliseconds since 1970), by user, and by verb and resource: `patch pods/status`. */
  between(fromMs: number, toMs: number): Map<string, Map<string, number>> {
    const counts = new Map<string, Map<string, number>>();
    const lines = existsSync(this.#log) ? readFileSync(this.#log, 'utf8').split('\n') : [];
    for (const line of lines.slice(0, -1)) {
      const event = JSON.parse(line) as AuditEvent;
      const at = Date.parse(event.requestReceivedTimestamp ?? '');
      if (!(at >= fromMs && at < toMs)) continue;
      const user = event.user?.username ?? '';
      const what = whatOf(event);
      const theirs = counts.get(user) ?? new Map<string, number>();
      counts.set(user, theirs.set(what, (theirs.get(what) ?? 0) + 1));
    }
    return counts;
  }
}

function whatOf({ verb, objectRef: { resource = 'other', subresource } = {} }: AuditEvent): string {
  return `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`;
}

/** `tributary dashboard`: opens the page of the role `cluster` by a port-forward, and signs in whoever holds a token. */
import { type ChildProcess, spawn } from 'node:child_process';

import { SYSTEM_NAMESPACE } from '../api/manifest.ts';
import { deployments, serviceAccountTokens } from '../api/resources.ts';
import { LABEL_INSTALLATION } from '../api/names.ts';
import type { KubeObject } from '../api/wire.ts';
import { hasCode, TributaryError } from '../lib/errors.ts';
import type { Command } from './command.ts';
import { EXIT } from './command-line.ts';
import { releaseOf } from './install/helm.ts';
import { kubectlCredentials, type Where } from './kubeconfig.ts';
import { clusterCommand, type Session } from './peering/environment.ts';

const DEPLOYMENT = 'tributary-cluster';
const DEFAULT_PORT = '8090';
const TOKEN_SECONDS = 3600;

interface DashboardArguments {
  where: Where;
  port: string;
  account: { namespace: string; name: string } | undefined;
}

export const dashboardCommand: Command = clusterCommand<DashboardArguments>({
  name: 'dashboard',
  summary: 'Open a live page of clusters, tunnels, namespaces and events.',
  about:
    'Needs kubectl for the port-forward, and runs until it is interrupted. You see and do on the page what you may with kubectl. ' +
    'Where the kubeconfig holds a token, or with --account, the address that is printed signs you in, once and within a minute.',
  options: {
    port: { value: 'PORT', text: 'port of this machine', fallback: 'a free one' },
    account: {
      value: 'NAMESPACE/NAME',
      text: 'sign in as this ServiceAccount, by a token that lives for an hour',
    },
  },
  examples: [
    { line: 'tributary dashboard', does: 'Open it for the cluster of your kubeconfig' },
    { line: 'tributary dashboard --account people/ann', does: 'Sign in as that ServiceAccount' },
  ],
  parse: ({ values }) => ({
    where: { kubeconfig: values['kubeconfig'], context: values['context'] },
    port: portOf(values['port'] ?? '0'),
    account: values['account'] === undefined ? undefined : accountOf(values['account']),
  }),
  run: async (args, session) => {
    const remote = await servedPort(session);
    const token = await tokenFor(args, session);
    const forward = await forwarded(args, remote, session);
    const { io } = session;
    try {
      const code = token === undefined ? undefined : await codeFor(forward.url, token);
      io.out(`${forward.url}/${code === undefined ? '' : `#code=${code}`}\n`);
      if (code === undefined)
        io.err('The page asks for a token: kubectl --namespace NAMESPACE create token ACCOUNT\n');
      io.err('Runs until you interrupt it (Ctrl-C).\n');
      await forward.ended;
      return session.signal.aborted ? EXIT.ok : EXIT.failed;
    } finally {
      forward.stop();
    }
  },
});

function portOf(text: string): string {
  const port = Number(text);
  if (!/^\d{1,5}$/u.test(text) || port > 65_535) {
    throw new TributaryError('Invalid', `--port must be a port, not "${text}"`);
  }
  return text;
}

function accountOf(text: string): { namespace: string; name: string } {
  const [namespace = '', name = '', ...more] = text.split('/');
  if (namespace === '' || name === '' || more.length > 0) {
    throw new TributaryError('Invalid', `--account is NAMESPACE/NAME, not "${text}"`);
  }
  return { namespace, name };
}

/** The port in the pod. Throws where the role does not serve the page. */
async function servedPort({ client, signal }: Session): Promise<string> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: DEPLOYMENT };
  const deployment = await client.get(deployments, ref, { signal }).catch((cause: unknown) => {
    if (!hasCode(cause, 'NotFound')) throw cause;
    throw new TributaryError(
      'NotFound',
      `there is no Deployment ${ref.namespace}/${ref.name}: is Tributary installed in this cluster?`,
    );
  });
  const args = deployment.spec?.template.spec?.containers[0]?.args ?? [];
  const after = (option: string): string | undefined => {
    const at = args.lastIndexOf(option);
    return at < 0 ? undefined : args[at + 1];
  };
  if (after('--dashboard') !== 'on') {
    throw new TributaryError(
      'Unavailable',
      `the dashboard is switched off in this cluster; to switch it on: ${switchingOn(deployment.metadata)}`,
    );
  }
  return after('--dashboard-port') ?? DEFAULT_PORT;
}

/** As Tributary was installed here. */
function switchingOn({ labels = {}, annotations = {} }: KubeObject['metadata']): string {
  const release = releaseOf(annotations);
  if (release !== undefined) {
    return `with Helm 3.14 or newer, helm upgrade ${release.name} CHART --namespace ${release.namespace} --reset-then-reuse-values --set dashboard=true`;
  }
  if (labels[LABEL_INSTALLATION] !== undefined) return 'tributary upgrade --dashboard true';
  return 'apply the manifests of the role cluster again, with --dashboard on';
}

/** Undefined: neither the kubeconfig nor the person has named one. */
async function tokenFor(
  { account, where }: DashboardArguments,
  { client, signal }: Session,
): Promise<string | undefined> {
  if (account === undefined) return (await kubectlCredentials(where)).token?.(signal);
  const wanted = { metadata: account, spec: { audiences: [], expirationSeconds: TOKEN_SECONDS } };
  const made = await client.create(serviceAccountTokens, wanted, { signal, subresource: 'token' });
  return made.status?.token;
}

interface Forward {
  url: string;
  /** When it has ended, for whatever reason. */
  ended: Promise<void>;
  stop: () => void;
}

/** By kubectl, whose plug-ins and proxies are those of the person. */
async function forwarded(
  { where: { kubeconfig, context }, port }: DashboardArguments,
  remote: string,
  { signal }: Session,
): Promise<Forward> {
  const child = spawn(
    'kubectl',
    [
      ...(kubeconfig === undefined ? [] : ['--kubeconfig', kubeconfig]),
      ...(context === undefined ? [] : ['--context', context]),
      '--namespace',
      SYSTEM_NAMESPACE,
      'port-forward',
      '--address=127.0.0.1',
      `deployment/${DEPLOYMENT}`,
      `${port === '0' ? '' : port}:${remote}`,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], signal },
  );
  const local = await localPort(child, port);
  const ended = new Promise<void>((resolve) => void child.once('close', () => resolve()));
  return { url: `http://127.0.0.1:${local}`, ended, stop: () => void child.kill() };
}

/** As kubectl says it. */
async function localPort(child: ChildProcess, port: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let complaint = '';
  child.stderr?.on('data', (text: Buffer) => (complaint += text.toString()));
  child.stdout?.on('data', (text: Buffer) => {
    const found = /^Forwarding from 127\.0\.0\.1:(\d+)/mu.exec(text.toString())?.[1];
    if (found !== undefined) resolve(found);
  });
  child.on('error', (cause: NodeJS.ErrnoException) => {
    const isMissing = cause.code === 'ENOENT';
    const message = isMissing
      ? 'kubectl is not on the PATH; it makes the port-forward'
      : 'kubectl port-forward';
    reject(new TributaryError('Unavailable', message, isMissing ? {} : { cause }));
  });
  child.once('close', () => {
    reject(new TributaryError('Unavailable', whyEnded(complaint.trim(), port)));
  });
  return promise;
}

/** Pure; `complaint` is what kubectl has said. */
export function whyEnded(complaint: string, port: string): string {
  if (complaint.includes('address already in use')) {
    return `port ${port} of this machine is in use by another program: name another one with --port, or none`;
  }
  return `kubectl port-forward ended: ${complaint || 'it said nothing'}`;
}

/** What signs a browser in without handing it the token. */
async function codeFor(url: string, token: string): Promise<string> {
  const answer = await fetch(`${url}/api/sign-in-codes`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-tributary-page': '1' },
    body: JSON.stringify({ token }),
  });
  const { code, error } = (await answer.json()) as { code?: string; error?: string };
  if (code === undefined)
    throw new TributaryError('Unauthorized', `the dashboard does not let you in: ${error}`);
  return code;
}

/**
 * What must not leave the cluster is taken out of objects and texts. Rather too much than too little: values are left out by the name
 * of their key and by their form, and of ConfigMaps of which nothing is known only the keys stay.
 */
import { GATEWAY_CONFIG_MAP, NETWORK_CONFIG_MAP } from '../../api/own-network.ts';
import { ANNOUNCEMENT_CONFIG_MAP } from '../../api/own-announcement.ts';
import { type Fields, isFields } from '../../lib/fields.ts';

export const LEFT_OUT = '[left out]';

/** ConfigMaps whose content is made of public facts by our own roles. */
const PUBLIC_MAPS: ReadonlySet<unknown> = new Set([
  NETWORK_CONFIG_MAP,
  GATEWAY_CONFIG_MAP,
  ANNOUNCEMENT_CONFIG_MAP,
]);

const SENSITIVE_KEY =
  /(?:pass(?:word|wd|phrase)?|secret|token|credential|authorization|cookie|api[-_]?key|private[-_]?key|preshared|client-key-data|kubeconfig)s?$/iu;
/** These annotations repeat whole objects, as they were applied or sent. */
const WHOLE_OBJECTS: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  'tributary.dev/applied',
]);

/** The object without what is secret in it. */
export function redactObject(object: object): object {
  const { kind, metadata } = object as { kind?: unknown; metadata?: { name?: unknown } };
  const fields = { ...object } as Fields;
  if (kind === 'Secret') return { ...cleaned(omit(fields, ['data', 'stringData'])), keys: keysOf(fields) };
  if (kind === 'ConfigMap' && !PUBLIC_MAPS.has(metadata?.name)) {
    return { ...cleaned(omit(fields, ['data', 'binaryData'])), keys: keysOf(fields) };
  }
  return cleaned(fields);
}

const omit = (fields: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));

const keysOf = (fields: Fields): string[] =>
  ['data', 'stringData', 'binaryData'].flatMap((part) => {
    const value = fields[part];
    return isFields(value) ? Object.keys(value) : [];
  });

const cleaned = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, cleanedValue(key, value)]));

function cleanedValue(key: string, value: unknown): unknown {
  if (WHOLE_OBJECTS.has(key)) return LEFT_OUT;
  if (typeof value === 'string') return SENSITIVE_KEY.test(key) ? LEFT_OUT : redactText(value);
  if (Array.isArray(value)) {
    // Values of variables are data of whoever set them, whatever their names are.
    if (key === 'env') return value.map((each: unknown) => (isFields(each) ? withoutValue(each) : LEFT_OUT));
    return key === 'args' || key === 'command'
      ? redactArguments(value)
      : value.map((each) => cleanedValue('', each));
  }
  return isFields(value) ? cleaned(value) : value;
}

const withoutValue = (variable: Fields): Fields =>
  Object.hasOwn(variable, 'value') ? { ...cleaned(variable), value: LEFT_OUT } : cleaned(variable);

/** `--token=x`, and `--token x`, which are two. */
function redactArguments(args: readonly unknown[]): unknown[] {
  const isOption = (arg: unknown): boolean =>
    typeof arg === 'string' && /^--?[\w-]+$/u.test(arg) && SENSITIVE_KEY.test(arg);
  return args.map((arg, index) => {
    if (isOption(args[index - 1]) && !(typeof arg === 'string' && arg.startsWith('-'))) return LEFT_OUT;
    return typeof arg === 'string' ? redactText(arg) : arg;
  });
}

type Replacement = string | ((match: string, tail?: string) => string);

/**
 * Whoever is logged writes some of the text, so none may be matched again and again: what is of any length begins at what it cannot hold
 * itself, or is matched as a whole also where it turns out to be nothing.
 */
const PATTERNS: readonly (readonly [pattern: RegExp, replacement: Replacement])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/gu, LEFT_OUT],
  // Tokens of accounts (JSON Web Tokens). Without a second part it is none.
  [
    /\beyJ[\w-]{8,}(\.[\w-]{8,}\.[\w-]*)?/gu,
    (match, tail): string => (tail === undefined ? match : LEFT_OUT),
  ],
  // Join tokens: ClusterID, name, secret.
  [/\b[a-z2-7]{26}\.[a-z0-9-]{1,40}\.[\w-]{43}/gu, LEFT_OUT],
  // Bootstrap tokens of Kubernetes.
  [/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/gu, LEFT_OUT],
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/giu, `$1 ${LEFT_OUT}`],
  [/(:\/\/)[^\s/:@]*:[^\s/@]+@/gu, `$1${LEFT_OUT}@`],
  // `password: x`, `"token":"x"`, `--token=x`, also inside a JSON text that is itself a string.
  [
    /((?:pass(?:word|wd|phrase)?|secret|token|credential|api[-_]?key|private[-_]?key|preshared[-_]?key|client-key-data)s?\\?["']?\s*[:=]\s*\\?["']?)([^\s"'\\,;}{[]{3,})/giu,
    `$1${LEFT_OUT}`,
  ],
];

/** Base64 as of Secrets: what it holds counts. */
const BASE64 = /[A-Za-z0-9+/]{40,}={0,2}/gu;

/** A text, such as a log, without what is secret in it. */
export const redactText = (text: string): string =>
  redactPlain(text).replaceAll(BASE64, (encoded) => {
    const decoded = Buffer.from(encoded, 'base64').toString('latin1');
    return redactPlain(decoded) === decoded ? encoded : LEFT_OUT;
  });

const redactPlain = (text: string): string =>
  PATTERNS.reduce(
    (so, [pattern, replacement]) =>
      typeof replacement === 'string'
        ? so.replaceAll(pattern, replacement)
        : so.replaceAll(pattern, replacement),
    text,
  );

import type { Manifest } from '../../api/manifest.ts';
import type { KubeObject } from '../../api/wire.ts';
import { jsonContains } from '../../lib/equality.ts';
import { parseMilli } from '../../lib/quantity.ts';
import { ANNOTATIONS_OF_POLICY } from '../annotations.ts';

/**
 * Whether an object of the cluster is as its manifest says. Kind and version do not count, because objects of a list lack
 * them. Amounts are compared as numbers, because an API server writes them in its own form: `1k` where 1000 was applied. Pure.
 */
export function isAsManifest(
  actual: KubeObject,
  { apiVersion: _version, kind, ...wanted }: Manifest,
): boolean {
  const spec = asStored(kind, specOf(actual));
  const said = { ...wanted, ...('spec' in wanted && { spec: asStored(kind, specOf(wanted)) }) };
  if (!jsonContains({ ...actual, spec }, said)) return false;
  // In these, what the manifest no longer says must go, because it would still bound or allow.
  if (kind === 'ResourceQuota' || kind === 'NetworkPolicy') return jsonContains(said, { spec });
  if (kind !== 'Namespace') return true;
  const { annotations = {} } = wanted.metadata;
  return ANNOTATIONS_OF_POLICY.every(
    (key) => key in annotations === key in (actual.metadata.annotations ?? {}),
  );
}

/** As the API server would return it: it leaves out empty lists of rules. */
function asStored(kind: string, spec: unknown): unknown {
  if (kind === 'ResourceQuota' || kind === 'LimitRange') return inMilli(spec);
  if (kind !== 'NetworkPolicy' || typeof spec !== 'object' || spec === null) return spec;
  return Object.fromEntries(
    Object.entries(spec).filter(([, value]) => !Array.isArray(value) || value.length > 0),
  );
}

const specOf = (object: object): unknown => ('spec' in object ? object.spec : undefined);

/** Each text in it that is a quantity, in thousandths; all else unchanged. */
function inMilli(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inMilli);
  if (typeof value === 'string') return milliOf(value);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, inMilli(part)]));
}

function milliOf(text: string): string {
  try {
    return String(parseMilli(text));
  } catch {
    return text;
  }
}

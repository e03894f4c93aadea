import { type Fields, isFields } from '../../../src/lib/fields.ts';

/** JSON merge patch, RFC 7386. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  const result: Fields = isFields(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

/** Lists that a strategic merge patch merges by a key instead of replacing them. */
const MERGE_KEYS: Record<string, string> = {
  conditions: 'type',
  containers: 'name',
  initContainers: 'name',
  ephemeralContainers: 'name',
  volumes: 'name',
  env: 'name',
  ports: 'port',
  addresses: 'type',
  ownerReferences: 'uid',
};

/** Strategic merge patch, as far as needed: maps merge, the lists above merge by key, all else is replaced. */
export function strategicPatch(target: unknown, patch: unknown, field = ''): unknown {
  const key = MERGE_KEYS[field];
  if (Array.isArray(patch) && Array.isArray(target) && key !== undefined)
    return mergeList(target, patch, key);
  if (!isFields(patch)) return patch;
  const result: Fields = isFields(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = strategicPatch(result[name], value, name);
  }
  return result;
}

function mergeList(target: unknown[], patch: unknown[], key: string): unknown[] {
  const result = [...target];
  for (const item of patch as Fields[]) {
    const at = result.findIndex((known) => (known as Fields)[key] === item[key]);
    if (item['$patch'] === 'delete') result.splice(at, at === -1 ? 0 : 1);
    else if (at === -1) result.push(item);
    else result[at] = strategicPatch(result[at], item);
  }
  return result;
}

export interface JsonPatchOperation {
  op: string;
  path: string;
  value?: unknown;
}

/** JSON patch, RFC 6902: add, remove, replace, test. Throws if an operation does not apply. */
export function jsonPatch(target: unknown, operations: readonly JsonPatchOperation[]): unknown {
  const root = { '': structuredClone(target) };
  for (const { op, path, value } of operations) {
    const steps = path.split('/').map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = steps.pop() ?? '';
    let parent: unknown = root;
    for (const step of steps) parent = (parent as Fields | undefined)?.[step];
    if (path === '') parent = root;
    if (typeof parent !== 'object' || parent === null) throw new Error(`path ${path} does not exist`);
    applyOperation(parent as Fields | unknown[], op, last, value);
  }
  return root[''];
}

function applyOperation(parent: Fields | unknown[], op: string, key: string, value: unknown): void {
  const exists = Array.isArray(parent) ? Number(key) < parent.length : key in parent;
  const fields = parent as Fields;
  if (op === 'test') {
    if (JSON.stringify(fields[key]) !== JSON.stringify(value)) throw new Error(`test of ${key} failed`);
  } else if (op === 'add') {
    if (Array.isArray(parent)) parent.splice(key === '-' ? parent.length : Number(key), 0, value);
    else parent[key] = value;
  } else {
    if (!exists) throw new Error(`${key} does not exist`);
    if (op === 'replace') fields[key] = value;
    else if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete parent[key];
  }
}

import type { KubeObject } from '../api/wire.ts';

/** Of templates that are remembered at a time; the oldest is forgotten first. */
const MOST_MODELS = 1_000;
/** Deeper parts, which only those nest who mean harm, are not looked into. */
export const MOST_DEPTH = 32;

/** One object, or what is made of it, for each template, as long as somebody holds it. */
export class Models<M extends object> {
  readonly #models = new Map<string, WeakRef<M>>();

  get(template: string): M | undefined {
    return this.#models.get(template)?.deref();
  }

  set(template: string, model: M): void {
    // Set anew, it is the youngest.
    this.#models.delete(template);
    this.#models.set(template, new WeakRef(model));
    if (this.#models.size > MOST_MODELS) this.#forgetOldest();
  }

  #forgetOldest(): void {
    for (const oldest of this.#models.keys()) {
      this.#models.delete(oldest);
      return;
    }
  }
}

/**
 * Makes objects that resemble each other hold their equal parts in common. The pods of a Deployment differ in names, addresses and
 * times only: held in common, a thousand of them need less than half the memory.
 *
 * What is held in common is frozen, so that nobody changes many objects by way of one.
 */
export class SharedParts<T extends KubeObject> {
  /** The last object of each template. */
  readonly #models = new Models<T>();

  /** The same object, or an equal earlier one. @param object ours alone; its equal parts are replaced in place */
  join(object: T, earlier: T | undefined): T {
    const template = templateOf(object);
    let joined = joinParts(object, earlier) as T;
    // The rest of what changes within a phase, such as times, is hardly ever another's, too.
    if (earlier === undefined || templateOf(earlier) !== template)
      joined = joinParts(joined, this.#models.get(template)) as T;
    this.#models.set(template, joined);
    return joined;
  }
}

/** Which objects are alike, as far as a glance shows; a wrong guess only costs memory. */
export function templateOf({ metadata, ...rest }: KubeObject & { status?: unknown }): string {
  const { phase = '' } = (rest.status ?? {}) as { phase?: string };
  const { name, namespace = '' } = metadata;
  // A controller names what it makes by one stem; over there no owner says whose pod it is.
  const stem = name.slice(0, Math.max(0, name.lastIndexOf('-')));
  return `${namespace}/${stem} ${phase}`;
}

export type Parts = Record<string, unknown>;

/** `value`, with each part that equals the model's replaced by the model's; or the model, where all of it is equal. */
function joinParts(value: unknown, model: unknown, depth = 0): unknown {
  if (value === model) return model;
  if (!isParts(value) || !isParts(model) || Array.isArray(value) !== Array.isArray(model)) return value;
  if (depth === MOST_DEPTH) return value;
  return isJoined(value, model, depth) ? Object.freeze(model) : value;
}

/** Joins each part; whether all of the two is equal. */
function isJoined(value: Parts, model: Parts, depth: number): boolean {
  const isOurs = !Object.isFrozen(value);
  let isSame = true;
  let more = 0;
  // Both are JSON, so a key that only a prototype has leads to a function, which equals no part. (Lists of keys were a fifteenth of
  // what a burst allocates.)
  for (const key in value) {
    more++;
    const own = key === '__proto__' ? undefined : model[key];
    const joined = joinParts(value[key], own, depth + 1);
    if (own === undefined || joined !== own) isSame = false;
    // Strings, too: equal ones are two pieces of memory.
    else if (isOurs) value[key] = own;
  }
  if (isSame) for (const _key in model) more--;
  return isSame && more === 0;
}

export const isParts = (value: unknown): value is Parts => typeof value === 'object' && value !== null;

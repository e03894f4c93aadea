import type { KubeObject } from '../api/wire.ts';
import { type Parts, isParts, MOST_DEPTH, Models, templateOf } from './shared-parts.ts';

/** Objects that differ more than that from their model, by characters of JSON and by share of their own, are models themselves. */
const FEW = { characters: 1_200, share: 0.25 };
/** A text of so many characters is not worth a reference to an equal one. */
const SHORT = 6;
/** Of one model: ways in which objects differ from it that are remembered. */
const MOST_FORMS = 64;

/** Where objects of one form differ from their model: by another value, by a part that is not there, or further below. */
type Difference = 'value' | 'none' | Differences;
type Differences = readonly (readonly [key: string, difference: Difference])[];

/** One object that others resemble, and the ways in which they differ from it. */
class Model<T extends KubeObject> {
  readonly object: T;
  readonly #forms = new Map<string, Form<T>>();

  /** @param object ours alone */
  constructor(object: T) {
    this.object = frozen(object);
  }

  form(differences: Differences): Form<T> {
    const id = JSON.stringify(differences);
    const known = this.#forms.get(id);
    if (known !== undefined) return known;
    // Those that are in use stay, and are merely not shared any more.
    if (this.#forms.size >= MOST_FORMS) this.#forms.clear();
    const made = { model: this, differences };
    this.#forms.set(id, made);
    return made;
  }
}

interface Form<T extends KubeObject> {
  readonly model: Model<T>;
  readonly differences: Differences;
}

/** An object, as its differences from a model: a third of the memory of one that holds equal parts in common with others. */
export class Packed<T extends KubeObject> {
  readonly #form: Form<T>;
  /** Those of the form, in their order: a JSON array. */
  readonly #values: string;

  constructor(form: Form<T>, values: string) {
    this.#form = form;
    this.#values = values;
  }

  /** An object equal to the one that was packed, made anew each time; its equal parts are the model's, and frozen. */
  unpacked(): T {
    const { model, differences } = this.#form;
    if (differences.length === 0) return model.object;
    const values = decoded(JSON.parse(this.#values) as unknown[]).values();
    return Object.freeze(filled(model.object, differences, values)) as T;
  }
}

/** An object as a store holds it. */
export type Held<T extends KubeObject> = T | Packed<T>;

export const unpacked = <T extends KubeObject>(held: Held<T>): T =>
  held instanceof Packed ? held.unpacked() : held;

/** Packs objects that resemble each other, such as the pods of a Deployment. */
export class Packer<T extends KubeObject> {
  readonly #models = new Models<Model<T>>();

  /** What cannot be packed stays as it is. @param object ours alone, or frozen where it is not */
  pack(object: T): Held<T> {
    const template = templateOf(object);
    const model = this.#models.get(template);
    const packed = model && packedBy(model, object);
    if (packed !== undefined) return packed;
    const own = new Model(object);
    const alone = packedBy(own, object);
    if (alone === undefined) return object;
    this.#models.set(template, own);
    return alone;
  }
}

/** Undefined: the object differs too much from the model, or in what cannot be packed. */
function packedBy<T extends KubeObject>(model: Model<T>, object: T): Packed<T> | undefined {
  try {
    const values: unknown[] = [];
    const differences = differencesOf(object, model.object, values);
    const text = JSON.stringify(encoded(values));
    const isLike = text.length <= FEW.characters || text.length <= FEW.share * JSON.stringify(object).length;
    return isLike ? new Packed(model.form(differences), text) : undefined;
  } catch (error) {
    // What nests too deep, or bears names of JavaScript: both mean harm.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** @param values what the object has instead is added to them */
function differencesOf(object: unknown, model: unknown, values: unknown[], depth = 0): Differences {
  const found: [string, Difference][] = [];
  const [own, other] = [object as Parts, model as Parts];
  for (const key of Object.keys(own)) {
    const value = own[key];
    const there = Object.hasOwn(other, key) ? other[key] : undefined;
    if (value === there) continue;
    if (key === '__proto__') throw new RangeError('a name of JavaScript');
    if (depth < MOST_DEPTH && isAlike(value, there)) {
      const below = differencesOf(value, there, values, depth + 1);
      if (below.length > 0) found.push([key, below]);
    } else {
      values.push(value);
      found.push([key, 'value']);
    }
  }
  for (const key of Object.keys(other)) if (!Object.hasOwn(own, key)) found.push([key, 'none']);
  return found;
}

/** Whether two parts can be compared key by key. */
function isAlike(value: unknown, model: unknown): boolean {
  if (!isParts(value) || !isParts(model)) return false;
  if (Array.isArray(value)) return Array.isArray(model) && value.length === model.length;
  return !Array.isArray(model);
}

/**
 * The values as they are held. A text that came before, such as one of the many times of a pod, is the number of its place, as the only
 * entry of a list; any other list is the only entry of one, too.
 */
function encoded(values: readonly unknown[]): unknown[] {
  return values.map((value, place) => {
    if (Array.isArray(value)) return [value];
    if (typeof value !== 'string' || value.length < SHORT) return value;
    const first = values.indexOf(value);
    return first < place ? [first] : value;
  });
}

/** @param held becomes the values */
function decoded(held: unknown[]): unknown[] {
  for (let place = 0; place < held.length; place++) {
    const value = held[place];
    if (!Array.isArray(value)) continue;
    const [only] = value as [unknown];
    held[place] = typeof only === 'number' ? held[only] : only;
  }
  return held;
}

function filled(model: unknown, differences: Differences, values: Iterator<unknown>): unknown {
  const parts = (Array.isArray(model) ? [...(model as unknown[])] : { ...(model as Parts) }) as Parts;
  for (const [key, difference] of differences) {
    if (difference === 'value') parts[key] = values.next().value;
    else if (difference === 'none') delete parts[key];
    else parts[key] = filled(parts[key], difference, values);
  }
  return parts;
}

/** To its leaves: many objects will have parts of it. */
function frozen<V>(value: V, depth = 0): V {
  // What a store holds is frozen at its top only, and what is held in common to its leaves.
  if (!isParts(value) || depth > MOST_DEPTH || (depth > 0 && Object.isFrozen(value))) return value;
  for (const part of Object.values(value)) frozen(part, depth + 1);
  return Object.freeze(value);
}

/**
 * The library for certificates expects a polyfill of decorator metadata and does not bring one. These are the
 * parts of it that are called.
 */
const store = new WeakMap<object, Map<unknown, unknown>>();

const own = (key: unknown, target: object): unknown => store.get(target)?.get(key);

function define(key: unknown, value: unknown, target: object): void {
  const entries = store.get(target) ?? new Map<unknown, unknown>();
  store.set(target, entries.set(key, value));
}

function inherited(key: unknown, target: object): unknown {
  for (
    let object: object | null = target;
    object !== null;
    object = Object.getPrototypeOf(object) as object | null
  ) {
    if (store.get(object)?.has(key) === true) return own(key, object);
  }
  return undefined;
}

Object.assign(Reflect, {
  defineMetadata: define,
  getMetadata: inherited,
  getOwnMetadata: own,
  metadata: (key: unknown, value: unknown) => (target: object) => define(key, value, target),
});

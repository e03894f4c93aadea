const MAX_CLASSES = 64;
/** As the kind VirtualNode takes it; one that it does not take must not hold up the rest. */
const CLASS = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/u;

/**
 * Classes of Ingresses here, and what they become over there: as people say, then those of the same name. The empty
 * one stands for Ingresses without a class, and only people can say what becomes of them. Pure.
 */
export function ingressClassesOf(
  asked: Readonly<Record<string, string>> = {},
  offered: readonly string[] = [],
): Record<string, string> {
  const classes = new Map(offered.map((name) => [name, name]));
  for (const name of Object.keys(asked)) classes.delete(name);
  const all = [...Object.entries(asked), ...[...classes].toSorted(([a], [b]) => (a < b ? -1 : 1))];
  return Object.fromEntries(
    all
      .filter(([here, there]) => (here === '' || CLASS.test(here)) && CLASS.test(there))
      .slice(0, MAX_CLASSES),
  );
}

/**
 * StorageClasses here, and what they become over there: only as people say. Data lie where they were put, so that a class
 * of the same name is no answer, as it is for Ingresses.
 */
export function storageClassesOf(asked: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(asked)
      .filter(([here, there]) => CLASS.test(here) && CLASS.test(there))
      .slice(0, MAX_CLASSES),
  );
}

/** Those that the provider lends, in the order of their names; an empty list says that it lends none. */
export function offeredStorageClassesOf(offered: readonly { name: string }[] = []): string[] {
  const names = new Set(offered.map(({ name }) => name).filter((name) => CLASS.test(name)));
  return [...names].toSorted().slice(0, MAX_CLASSES);
}

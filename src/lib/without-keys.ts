export function withoutKeys<T extends object>(fields: T, keys: readonly string[]): T {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => !keys.includes(key))) as T;
}

/** Sets an entry as the newest of its map and keeps the map bounded: beyond `max` the oldest entry is forgotten. */
export function remember<K, V>(map: Map<K, V>, key: K, value: V, max: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= max) return;
  // A Map iterates from its oldest entry.
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}

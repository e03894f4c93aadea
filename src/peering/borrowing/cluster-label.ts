import { baseNames } from './names.ts';

const MAX_LENGTH = 63;
const ID_LENGTH = 8;

/**
 * What the provider calls itself, as a label value; else the first characters of its ID. Namespaces are sent to clusters by
 * this label, and anybody may call itself what another is called: only for the one whose virtual nodes have that name
 * here, which is given once, it stands without a part of the ID. Pure.
 *
 * @param nodeName what its virtual nodes are named after
 */
export function clusterLabel(
  clusterName: string | undefined,
  clusterID: string,
  nodeName: string | undefined,
): string {
  const value = labelValue(clusterName ?? '', MAX_LENGTH);
  const id = clusterID.slice(0, ID_LENGTH);
  if (value === '') return id;
  const isItsOwn = nodeName === baseNames(clusterName, clusterID)[0];
  return isItsOwn ? value : `${labelValue(value, MAX_LENGTH - ID_LENGTH - 1)}-${id}`;
}

const labelValue = (text: string, length: number): string =>
  text
    .replaceAll(/[^-A-Za-z0-9_.]+/gu, '-')
    .replace(/^[^A-Za-z0-9]+/u, '')
    .slice(0, length)
    .replace(/[^A-Za-z0-9]+$/u, '');

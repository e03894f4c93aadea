import { checkedLabel } from '../../api/manifest.ts';
import { TributaryError } from '../../lib/errors.ts';
import { isClusterID } from '../identity/identity.ts';

/** What a person carries from the provider to the consumer: whose door it opens, which entry, and the secret. */
export interface JoinToken {
  /** ClusterID of the provider that made it; who holds the token needs no other proof of whom to trust. */
  clusterID: string;
  /** Name of the entry that the provider keeps; not secret. */
  name: string;
  /** 43 characters of base64url: 32 random bytes. */
  secret: string;
}

/** A name must fit, with its prefix, into the name of a Secret and into a label. */
export const MAX_TOKEN_NAME = 40;
/** ClusterID, name, secret and two dots. */
const MAX_TOKEN_LENGTH = 26 + MAX_TOKEN_NAME + 43 + 2;
const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** `<clusterID>.<name>.<secret>`: none of the three can hold a dot. */
export function formatJoinToken({ clusterID, name, secret }: JoinToken): string {
  return `${clusterID}.${name}.${secret}`;
}

/** Throws Invalid for anything else, without repeating what it was given: it may hold a secret. */
export function parseJoinToken(text: string): JoinToken {
  const trimmed = text.trim();
  const parts = trimmed.length > MAX_TOKEN_LENGTH ? [] : trimmed.split('.');
  const [clusterID = '', name = '', secret = ''] = parts;
  if (parts.length !== 3 || !isClusterID(clusterID) || !isTokenName(name) || !SECRET.test(secret)) {
    throw new TributaryError(
      'Invalid',
      'the join token is not of the form <clusterID>.<name>.<secret>; copy all of what `tributary token create` printed',
    );
  }
  return { clusterID, name, secret };
}

/** Throws Invalid with one line that says what is wrong. */
export const checkedTokenName = (name: string): string => checkedLabel('token name', name, MAX_TOKEN_NAME);

function isTokenName(name: string): boolean {
  return name.length <= MAX_TOKEN_NAME && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name);
}

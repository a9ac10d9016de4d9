"""S3 and compatible servers, over s3fs. Imported only where a URI says `s3://`."""

from manifests.store.s3.client import S3Client
from manifests.store.s3.location import Location, parse_location
from manifests.store.s3.objects import S3Objects
from manifests.store.s3.store import S3Store

__all__ = ["Location", "S3Client", "S3Objects", "S3Store", "parse_location"]

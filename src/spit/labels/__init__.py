"""What comes out of a label map: tables, graphs, polygons and pictures, on arrays and without torch.

Labels may come from :func:`spit.superpixels`, scikit-image or a segmentation model. Their public functions are
``spit.regions``, ``spit.adjacency``, ``spit.polygons`` and ``spit.draw``.
"""
